package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func promised(t *testing.T, schema string) (*Promise, string) {
	t.Helper()
	p, err := Promised(gjson.Parse(schema), Options{Place: "s"}, new(Work))
	if err != nil {
		if err.Code != "invalid_schema" || err.Param != "s" {
			t.Errorf("%+v", err)
		}
		return nil, err.Message
	}
	return p, ""
}

// TestPromised_Rewrites: what the engine holds by its own grammar, and what is left to the check.
func TestPromised_Rewrites(t *testing.T) {
	t.Parallel()
	const object, list = `{"type":"object",`, `{"type":"array",`
	for given, want := range map[string]string{
		`true`:                   `{}`,
		`{"type":"STRING"}`:      `{"type":"string"}`,
		`{"type":"any"}`:         `{}`,
		`{"type":null}`:          `{}`,
		`{"const":{"a":[null]}}`: `{"const":{"a":[null]}}`,
		`{"enum":["a"]}`:         `{"const":"a"}`,
		`{"type":["string","null"],"enum":["a",null,1]}`: `{"enum":["a",null]}`,
		`{"type":["string","null"]}`:                     `{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		`{"type":"string","nullable":true}`:              `{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		`{"enum":["a"],"minLength":1}`:                   `checked {"const":"a"}`,

		`{"properties":{"a":true,"b":false},"required":["a"]}`:                              object + `"properties":{"a":{}},"required":["a"],"additionalProperties":false}`,
		object + `"required":["a"]}`:                                                        object + `"properties":{"a":{}},"required":["a"],"additionalProperties":{}}`,
		object + `"properties":{"a]":{}},"additionalProperties":true}`:                      object + `"properties":{"a]":{}},"additionalProperties":false}`,
		object + `"patternProperties":{"^x":{"type":"null"}}}`:                              `checked ` + object + `"additionalProperties":{"type":"null"}}`,
		object + `"minProperties":1}`:                                                       `checked {"type":"object"}`,
		object + `"properties":{"a":{}},"maxProperties":1}`:                                 object + `"properties":{"a":{}},"additionalProperties":false}`,
		object + `"propertyNames":{"maxLength":1}}`:                                         `checked {"type":"object"}`,
		object + `"properties":{"a":{}},"dependentRequired":{"a":["b"]}}`:                   `checked ` + object + `"properties":{"a":{}},"additionalProperties":false}`,
		object + `"properties":{"a":{}},"if":{"required":["a"]},"then":{"required":["b"]}}`: `checked ` + object + `"properties":{"a":{}},"additionalProperties":false}`,

		list + `"maxItems":0}`:                                             `{"const":[]}`,
		list + `"items":false}`:                                            `{"const":[]}`,
		list + `"items":true,"minItems":2.0}`:                              list + `"items":{},"minItems":2}`,
		list + `"items":[{"type":"null"}]}`:                                list + `"prefixItems":[{"type":"null"}]}`,
		list + `"prefixItems":[{"type":"null"}],"items":{},"minItems":2}`:  list + `"prefixItems":[{"type":"null"},{}]}`,
		list + `"prefixItems":[{"type":"null"},{"const":1}],"maxItems":1}`: list + `"prefixItems":[{"type":"null"}]}`,
		list + `"uniqueItems":true}`:                                       `checked ` + list + `"uniqueItems":true,"items":{}}`,
		list + `"contains":{"const":1}}`:                                   `checked ` + list + `"items":{}}`,
		list + `"minItems":5000}`:                                          `checked ` + list + `"items":{}}`,

		`{"type":"string","pattern":"^\\d{3}$"}`:           `{"type":"string","pattern":"^[0-9]{3}$"}`,
		`{"type":"string","pattern":"a$"}`:                 `{"type":"string","pattern":"^([^\\x00-\\x1F\\x22\\x5C\\x7F]|\\\\[\"\\\\nrt])*a$"}`,
		`{"type":"string","pattern":"^(?!x)"}`:             `checked {"type":"string"}`,
		`{"type":"string","pattern":"^a+$","maxLength":3}`: `checked {"type":"string","pattern":"^(a)+$"}`,
		`{"type":"string","pattern":"^$"}`:                 `{"const":""}`,
		`{"type":"string","format":"date","minLength":1}`:  `checked {"type":"string","format":"date"}`,
		`{"type":"string","format":"email"}`:               `{"type":"string"}`,
		`{"type":"string","minLength":5000}`:               `checked {"type":"string"}`,
		`{"type":"string","maxLength":0}`:                  `{"const":""}`,
		`{"pattern":"^a$","minimum":1}`:                    `checked {"anyOf":[{"type":"string","pattern":"^a$"},{"type":"number","minimum":1}]}`,

		`{"type":"integer","minimum":100}`:                               `{"type":"integer","minimum":100,"maximum":9007199254740991}`,
		`{"type":"integer","exclusiveMinimum":0.5,"exclusiveMaximum":7}`: `{"type":"integer","minimum":1,"maximum":6}`,
		`{"type":"integer","minimum":1,"exclusiveMinimum":true}`:         `{"type":"integer","minimum":2,"maximum":9007199254740991}`,
		`{"type":"integer","maximum":1e300}`:                             `{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`,
		`{"type":"integer","minimum":3,"maximum":3}`:                     `{"const":3}`,
		`{"type":"number","minimum":0.5,"maximum":0.7}`:                  `checked {"type":"number","minimum":0.5,"maximum":0.7}`,
		`{"type":"integer","multipleOf":5}`:                              `checked {"type":"integer"}`,

		`{"allOf":[{"type":"integer"},{"minimum":2}]}`:                                            `{"type":"integer","minimum":2,"maximum":9007199254740991}`,
		`{"allOf":[{"type":"null"}],"description":"D"}`:                                           `{"type":"null","description":"D"}`,
		`{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`: `{"anyOf":[` + object + `"properties":{"a":{}},"required":["a"],"additionalProperties":false},` + object + `"properties":{"a":{},"b":{}},"required":["b"],"additionalProperties":false}]}`,
		`{"oneOf":[{"type":"null"},{"type":"string"}]}`:                                           `{"anyOf":[{"type":"null"},{"type":"string"}]}`,
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`:                                        `checked {"anyOf":[{"type":"integer"},{"type":"number"}]}`,
		`{"anyOf":[false,{"type":"null"}]}`:                                                       `{"type":"null"}`,
		`{"not":{"type":"null"}}`:                                                                 `checked {}`,

		`{"$ref":"#/$defs/a~1b%5B","$defs":{"a/b[":{"type":"null"}}}`:        `{"$ref":"#/$defs/d0","$defs":{"d0":{"type":"null"}}}`,
		`{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"null"}}}`:          `{"$ref":"#/$defs/d0","$defs":{"d0":{"type":"null"}}}`,
		`{"$ref":"#/x-other/a","x-other":{"a":{"type":"NULL"}}}`:             `{"$ref":"#/$defs/d0","$defs":{"d0":{"type":"null"}}}`,
		`{"$ref":"#/$defs/a","minLength":2,"$defs":{"a":{"type":"string"}}}`: `{"type":"string","minLength":2}`,
		list + `"items":{"$ref":"#"}}`:                                       list + `"items":{"$ref":"#/$defs/d0"},"$defs":{"d0":` + list + `"items":{"$ref":"#/$defs/d0"}}}}`,
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			p, refusal := promised(t, given)
			if p == nil {
				t.Fatal(refusal)
			}
			got := p.Whole()
			if p.Checker != nil {
				got = "checked " + got
			}
			if got != want {
				t.Errorf("%s\nnot %s", got, want)
			}
		})
	}
}

func TestPromised_RefusesWhatItCantKeep(t *testing.T) {
	t.Parallel()
	members := func(n int) string { return `{"enum":[` + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + `]}` }
	text := `{"type":"string"}`
	for name, tt := range map[string]struct{ schema, says string }{
		"a type":                        {`{"properties":{"a":{"type":5}}}`, `"type" at #/properties/a/type in "s" must be "object"`},
		"an unknown type":               {`{"type":"file"}`, `or an array of these, not "file"`},
		"no types":                      {`{"type":[]}`, "not an empty array"},
		"no values":                     {`{"enum":[]}`, "not an empty array"},
		"never":                         {`false`, `"s" can't be matched by anything.`},
		"a property that can't be":      {`{"properties":{"a":false},"required":["a"]}`, `"a" at #/properties/a in "s" can't be matched by anything.`},
		"types that exclude each other": {`{"allOf":[{"type":"null"},{"type":"string"}]}`, "can't be matched"},
		"crossed lengths":               {`{"items":{"minLength":3,"maxLength":2}}`, `"minLength" at #/items/minLength in "s" is above "maxLength"`},
		"crossed elements":              {`{"minItems":3,"maxItems":2}`, `"minItems"`},
		"crossed bounds":                {`{"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":4}`, "no integer"},
		"a large bound":                 {`{"type":"integer","minimum":1e17}`, "no integer"},
		"a long text":                   {`{"type":"string","maxLength":1e9}`, `"maxLength"`},
		"half a character":              {`{"type":"string","maxLength":0.5}`, "whole number"},
		"another document":              {`{"$ref":"http://127.0.0.1/x"}`, "not fetched"},
		"nowhere":                       {`{"$ref":"#/$defs/none"}`, "leads nowhere"},
		"itself":                        {`{"$ref":"#"}`, "back to itself"},
		"itself by another":             {`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "back to itself"},
		"itself or nothing":             {`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}`, "back to itself"},
		"a costly pattern":              {`{"type":"string","pattern":"^(a?){300}$"}`, "may be empty"},
		"a pattern that crosses":        {`{"type":"string","pattern":"a{3,2}"}`, "at most"},
		"no pattern":                    {`{"type":"string","pattern":"(a"}`, "no regular expression"},
		"bytes":                         {`{"description":"` + strings.Repeat("a", maxBytes) + `"}`, "bytes"},
		"levels":                        {testkit.Nested(`{"items":`, `{}`, `}`, 64), "levels"},
		"values":                        {testkit.Properties(500, `{"enum":[`+strings.TrimSuffix(strings.Repeat("1,", 50), ",")+`]}`, true), "values"},
		"properties":                    {testkit.Properties(513, text, true), "rules"},
		"optional properties":           {testkit.Properties(400, text, false), "rules"},
		"enum":                          {members(1025), "rules"},
		"alternatives":                  {`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(testkit.Properties(20, text, false)+",", 300), ",") + `]}`, "rules"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p, refusal := promised(t, tt.schema); p != nil || !strings.Contains(refusal, tt.says) {
				t.Errorf("%q, want %q", refusal, tt.says)
			}
		})
	}
}

// doubling is a schema in which each definition refers to the next one twice.
func doubling(n int, word string) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d","minLength":1}]}`, i, word, i+1, i+1))
	}
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(append(defs, fmt.Sprintf(`"d%d":{"type":"string"}`, n)), ",") + `}}`
}

func TestPromise_ChecksAnswers(t *testing.T) {
	t.Parallel()
	for schema, answers := range map[string][2]string{ // one that matches, one that doesn't
		`{"type":"number","minimum":0.5,"maximum":0.7}`:   {`0.6`, `6`},
		`{"type":"string","pattern":"^(?!x)"}`:            {`"y"`, `"x"`},
		`{"items":[{"const":1}],"uniqueItems":true}`:      {`[1,2]`, `[1,1]`},
		`{"type":"string","format":"date","maxLength":9}`: {`"2020"`, `"2020-01-02"`},
		`{"not":{"type":"STRING"}}`:                       {`1`, `"a"`},
	} {
		p, refusal := promised(t, schema)
		if p == nil || p.Checker == nil {
			t.Fatalf("%s: %s", schema, refusal)
		}
		if err := p.Mismatch([]byte(answers[0])); err != nil {
			t.Errorf("%s: %s", schema, err.Message)
		}
		if err := p.Mismatch([]byte(answers[1])); err == nil || err.Code != "format_not_met" || err.Status() != 502 {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// FuzzPromised: whatever a schema is, what an engine gets of it is JSON that a second time makes the same of.
func FuzzPromised(f *testing.F) {
	for _, s := range []string{`{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"x":false}}],"$defs":{"a":{"anyOf":[true,{"$ref":"#"}]}}}`, `{"type":["string"],"pattern":"[^]]a|b$"}`, `{"prefixItems":[false],"minItems":3}`, doubling(5, "anyOf")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !gjson.Valid(s) {
			return
		}
		if p, _ := Promised(gjson.Parse(s), Options{Place: "s"}, new(Work)); p != nil {
			if !gjson.Valid(p.Whole()) {
				t.Errorf("%s", p.Whole())
			} else if again, err := Promised(gjson.Parse(p.Whole()), Options{Place: "s"}, new(Work)); err != nil {
				t.Errorf("%s: %s %v", p.Whole(), err.Message, again)
			}
		}
		if offered := Offer(gjson.Parse(s), new(Work)); offered != "" && !gjson.Valid(offered) {
			t.Errorf("%s", offered)
		}
	})
}
