package mcploop

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"enum":["a","b"]}},"required":["n"],"additionalProperties":false}`
	const tree = `{"$defs":{"t":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/t"}}},{"properties":{"x":{"$ref":"#/$defs/t"}}}]}},"$ref":"#/$defs/t"}`
	deep := strings.Repeat(`{"x":`, 50) + "1" + strings.Repeat("}", 50)
	for name, tt := range map[string]struct{ schema, args, want string }{
		"right":                      {object, `{"n":2,"s":"a"}`, ""},
		"a wrong type":               {object, `{"n":"2"}`, "at '/n': got string, want integer"},
		"out of range":               {object, `{"n":0}`, "minimum"},
		"one too many":               {object, `{"n":1,"z":1}`, "additional properties 'z' not allowed"},
		"one missing":                {object, `{}`, "missing property 'n'"},
		"not of the list":            {object, `{"n":1,"s":"c"}`, "one of"},
		"no schema":                  {``, `{"anything":[1]}`, ""},
		"no object":                  {``, `[1]`, "not a valid JSON object"},
		"two objects":                {``, `{}{}`, "not a valid JSON object"},
		"a name twice":               {``, `{"a":1,"a":2}`, "not a valid JSON object"},
		"too deep":                   {``, strings.Repeat(`{"x":`, 70) + "1" + strings.Repeat("}", 70), "not a valid JSON object"},
		"too many values":            {``, `{"a":[` + strings.Repeat("1,", 20_000) + `1]}`, "more than 20000 values"},
		"too long":                   {``, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "at most 1048576"},
		"space around":               {object, " \n{\"n\":1} ", ""},
		"another document":           {`{"$ref":"https://example.org/s"}`, `{}`, ""},
		"an unknown dialect":         {`{"$schema":"https://example.org/s","type":"object","required":["a"]}`, `{}`, ""},
		"an older dialect":           {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["a"]}`, `{}`, "missing property 'a'"},
		"a format":                   {`{"properties":{"u":{"type":"string","format":"uri"}}}`, `{"u":"not a uri"}`, ""},
		"a pattern of other engines": {`{"properties":{"u":{"type":"string","pattern":"^(?!x)"}}}`, `{"u":"x"}`, "does not match pattern"},
		"a pattern":                  {`{"properties":{"u":{"type":"string","pattern":"^a+$"}}}`, `{"u":"b"}`, "does not match pattern"},
		"properties called as words": {`{"properties":{"properties":{"type":"integer"},"format":{"type":"integer"}},"dependentRequired":{"format":["x"]}}`, `{"properties":"a","format":1}`, "'/properties': got string"},
		"a schema that explodes":     {tree, deep, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &offer{Tool: Tool{Schema: json.RawMessage(tt.schema)}}
			got := o.refuse([]byte(tt.args))
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
