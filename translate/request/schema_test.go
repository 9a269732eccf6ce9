package request

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/internal/testkit"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// doubling is a schema in which each definition refers to the next one twice.
func doubling(n int, word string) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, word, i+1, i+1))
	}
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(append(defs, fmt.Sprintf(`"d%d":{"type":"string"}`, n)), ",") + `}}`
}

func TestSchema_Bounds(t *testing.T) {
	t.Parallel()
	text := `{"type":"string"}`
	members := func(n int) string { return `{"enum":[` + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + `]}` }
	allowed := map[string]string{
		"empty":              `{}`,
		"many required":      testkit.Properties(500, text, true),
		"many optional":      testkit.Properties(300, text, false),
		"deep":               testkit.Nested(`{"items":`, `{}`, `}`, 63),
		"members":            members(1024),
		"a list":             `{"type":"object","properties":{"next":{"$ref":"#/$defs/list"}},"$defs":{"list":{"anyOf":[{"type":"null"},{"type":"object","properties":{"next":{"$ref":"#/$defs/list"}}}]}}}`,
		"an escaped name":    `{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{}}}`,
		"an element":         `{"$ref":"#/anyOf/1","anyOf":[{},{"type":"string"}]}`,
		"shared definitions": doubling(10, "anyOf"),
		"a tree":             `{"$ref":"#/$defs/t","$defs":{"t":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/t"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/t"}}]}}}`,
		"true and false":     `{"properties":{"a":true},"additionalProperties":false}`,
		"not read":           `{"$defs":{"a":` + testkit.Properties(400, text, false) + `,"b":` + testkit.Properties(400, text, false) + `}}`,
		"long texts":         `{"type":"string","minLength":1,"maxLength":100000}`,
	}
	for name, schema := range allowed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var work SchemaWork
			if err := work.Check("s", gjson.Parse(schema)); err != nil {
				t.Error(err)
			}
		})
	}
	refused := map[string]struct{ schema, says string }{
		"bytes":                {`{"description":"` + strings.Repeat("a", maxSchemaBytes) + `"}`, "bytes"},
		"levels":               {testkit.Nested(`{"items":`, `{}`, `}`, 64), "levels"},
		"values":               {testkit.Properties(500, `{"enum":[`+strings.TrimSuffix(strings.Repeat("1,", 50), ",")+`]}`, true), "values"},
		"properties":           {testkit.Properties(513, text, true), "properties in one object"},
		"optional properties":  {testkit.Properties(400, text, false), "rules"},
		"enum":                 {members(1025), `members in one "enum"`},
		"alternatives":         {`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(testkit.Properties(20, text, false)+",", 300), ",") + `]}`, "rules"},
		"doubled by allOf":     {doubling(40, "allOf"), "rules"},
		"doubled by anyOf":     {doubling(40, "anyOf"), "rules"},
		"itself":               {`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, "back to itself"},
		"itself by another":    {`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "back to itself"},
		"itself or nothing":    {`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}`, "back to itself"},
		"another document":     {`{"$ref":"http://127.0.0.1/x"}`, "not fetched"},
		"all of it":            {`{"$ref":"#"}`, "in the schema itself"},
		"nowhere":              {`{"$ref":"#/$defs/none"}`, "leads nowhere"},
		"a long text":          {`{"type":"string","maxLength":1e9}`, `"maxLength"`},
		"lengths":              {`{"items":{"type":"string","minLength":3,"maxLength":2}}`, `"minLength"`},
		"numbers of elements":  {`{"type":"array","minItems":3,"maxItems":2}`, `"minItems"`},
		"no elements":          {`{"type":"array","maxItems":0}`, `"maxItems"`},
		"crossed bounds":       {`{"type":"integer","minimum":3,"maximum":2}`, `"minimum"`},
		"a large bound":        {`{"type":"integer","minimum":1e17}`, `"minimum"`},
		"a large limit":        {`{"type":"integer","exclusiveMaximum":-1e300}`, `"exclusiveMaximum"`},
		"a pattern":            {`{"type":"string","pattern":"^(a?){300}$"}`, "may be empty"},
		"a pattern far inside": {`{"anyOf":[{"properties":{"x":{"items":[{"pattern":"^(a?){300}$"}]}}}]}`, "may be empty"},
	}
	for name, tt := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var work SchemaWork
			err := work.Check("s", gjson.Parse(tt.schema))
			if err == nil || err.Code != "invalid_schema" || err.Param != "s" || !strings.Contains(err.Message, tt.says) {
				t.Errorf("error %v, want one about %s", err, tt.says)
			}
		})
	}
}

func TestPattern_Bounds(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		``, `^a$`, `^[a-z0-9]+(-[a-z0-9]+)*$`, `^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$`, `^.{0,1000}$`, `^(\d{1,3}\.){3}\d{1,3}$`,
		`^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`, `^(a?){32}$`, `^a{`, `^{1,2}`, `)a(`, `[`, `\`, `(`,
		`^(Jan|Feb|Mar)$`, `^([a-z]{2}(-[A-Z]{2})?,){50}$`, `^[]{1,9}$`,
		`^([` + strings.Repeat("a", 1500) + `]){2}$`, `^([` + strings.Repeat(`\]`, 700) + `]b){9}$`, `^(a?){20}(b?){12}$`, `^((a?){4}b){20}$`, `^((a?){16}|(b?){16})$`,
	} {
		if err := checkPattern("s", gjson.Result{Type: gjson.String, Str: p}); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for p, says := range map[string]string{
		`^(a?){33}$`:                     "may be empty",
		`^((a?){10}){10}$`:               "may be empty",
		`^(a?){20}(b?){13}$`:             "may be empty",
		`^((a?){16}|(b?){17})$`:          "may be empty",
		`^((a?){17}b(c?){16}){2}$`:       "may be empty",
		`^(a(b?){32})?(c?)$`:             "may be empty",
		`^((a*)|b){40}$`:                 "may be empty",
		`^` + strings.Repeat("a?", 33):   "may be empty",
		`^` + strings.Repeat("(a|)", 33): "may be empty",
		`)(a?){33}`:                      "may be empty",
		`^(a{50}){50}$`:                  "repeats to",
		`^a{3,2}$`:                       "at least more often",
		`^a{2001}`:                       "repeats to",
		`^a{99999999999999999999}`:       "repeats to",
		`^a{2001,}`:                      "repeats to",
		strings.Repeat("a", 2049):        "bytes",
		strings.Repeat("(", 40):          "groups within",
	} {
		if err := checkPattern("s", gjson.Result{Type: gjson.String, Str: p}); err == nil || !strings.Contains(err.Message, says) {
			t.Errorf("%q: %v, want one about %s", p, err, says)
		}
	}
}

// FuzzPattern: whatever a pattern is, it is read to its end.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{`^(a?){3,}$`, `[^]]*\`, `((((`, `a{1}{2}{3}`, `(|)*`, `)`} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := pattern{text: text}
		if size := p.alternatives(0); !p.deep && p.pos < len(text) || size.most < 0 || size.characters < 0 {
			t.Errorf("%q: read to %d of %d, %+v", text, p.pos, len(text), size)
		}
	})
}

func TestNewTool_HasObjectsAsSchemas(t *testing.T) {
	t.Parallel()
	const given = `{"type":"object","properties":{"a":true,"b":null,"c":{"items":true,"default":true}},"additionalProperties":true}`
	tool, err := NewTool("f", "", gjson.Parse(given), "", new(SchemaWork))
	const want = `{"type":"object","properties":{"a":{},"c":{"items":{},"default":true}},"additionalProperties":true}`
	if err != nil || tool.Parameters != want {
		t.Errorf("%v %s", err, tool.Parameters)
	}
}

func TestArrange_GivesEachPropertyOneType(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"type":"integer"}`: `{"type":"integer"}`,
		`{}`:                 `{"type":"string"}`,
		`{"type":["null","array"],"items":{"type":["integer","string"]}}`: `{"type":"array","items":{"type":"integer"}}`,
		`{"type":["null"]}`:   `{"type":"string"}`,
		`{"description":"D"}`: `{"type":"string","description":"D"}`,
		`{"anyOf":[{"type":"null"},{"type":["null","number"]}]}`: `{"type":"number","anyOf":[{"type":"null"},{"type":"number"}]}`,
		`{"enum":[1,2]}`:             `{"type":"number","enum":[1,2]}`,
		`{"$ref":"#/$defs/a"}`:       `{"type":"object","$ref":"#/$defs/a"}`,
		`{"properties":{"type":{}}}`: `{"type":"object","properties":{"type":{"type":"string"}}}`,
	} {
		body := testkit.Scan(t, `{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"p":`+given+`}}}}]}`)
		var e jsonbody.Edit
		Arrange(body, &e, &Template{TypedTools: true})
		if got := gjson.GetBytes(e.Value(body, "tools"), "0.function.parameters.properties.p").Raw; got != want {
			t.Errorf("%s: %s, not %s", given, got, want)
		}
	}
}
