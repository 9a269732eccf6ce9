package request

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestForce(t *testing.T) {
	t.Parallel()
	const none = `{"type":"object","properties":{},"additionalProperties":false}`
	for name, tt := range map[string]struct{ parameters, want, definitions string }{
		"unknown":    {``, none, ``},
		"none":       {`{"type":"object"}`, none, ``},
		"any":        {`{"type":"object","additionalProperties":true}`, `{"type":"object"}`, ``},
		"a required": {`{"type":"object","required":["a"]}`, `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":{}}`, ``},
		"references": {
			`{"properties":{"a":{"$ref":"#/$defs/x"},"$ref":{"enum":[{"$ref":"#/b"},1]}},"$defs":{"x":{"items":{"$ref":"#/$defs/x"}}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/t0d0"},"$ref":{"enum":[{"$ref":"#/b"},1]}},"additionalProperties":false}`,
			`{"t0d0":{"type":"array","items":{"$ref":"#/$defs/t0d0"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var chat Chat
			made, err := chat.Force([]Tool{{Name: "f", Parameters: tt.parameters}})
			if err != nil {
				t.Fatal(err)
			}
			format := gjson.Parse(made).Get("json_schema.schema")
			if diff := cmp.Diff([]string{tt.want, tt.definitions}, []string{format.Get("anyOf.0.properties.arguments").Raw, format.Get("$defs").Raw}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestForce_NamesWhatIsWrong: a promise that can't be kept is an error, but of a tool of an MCP server, which nobody here can change.
func TestForce_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	tool := Tool{Name: "f", Place: "tools[0].function.parameters", Parameters: `{"properties":{"a":{"enum":[]}}}`}
	var chat Chat
	_, err := chat.Force([]Tool{tool})
	const want = `"enum" at #/properties/a/enum in "tools[0].function.parameters" of the tool "f" must be an array with at least one value, not an empty array.`
	if err == nil || err.Code != "invalid_schema" || err.Message != want {
		t.Errorf("%v", err)
	}
	tool.Server = "s"
	made, err := chat.Force([]Tool{tool})
	if err != nil || !strings.Contains(made, `"arguments":{"type":"object"}`) {
		t.Errorf("%s %v", made, err)
	}
}
