package openai

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// The schemas of all tools count together. Of those that cost too much the model only reads.
func TestSchema_ToolsCountTogether(t *testing.T) {
	t.Parallel()
	tool := `{"type":"function","function":{"name":"a","parameters":` + testkit.Properties(200, `{"type":"string"}`, false) + `}}`
	tools, err := request.ReadTools(gjson.Parse("["+tool+","+tool+","+tool+"]"), readTool)
	if err != nil {
		t.Fatal(err)
	}
	for i, tool := range tools {
		if isWhole := gjson.Get(tool.Definition, "function.parameters.properties").Exists(); isWhole != (i < 2) {
			t.Errorf("%d: %.200s", i, tool.Definition)
		}
	}
}

// TestSchema_OnlyPromisesAreRefused: a schema that can't be kept refuses a request that demands a call, names the tool or is strict, and no other.
func TestSchema_OnlyPromisesAreRefused(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":5}`:                            `"type" at #/type in "tools[0].function.parameters" of the tool "f" must be "object", `,
		`{"properties":[]}`:                     `"properties" at`,
		`{"properties":{"a":{"enum":[]}}}`:      `"enum" at #/properties/a/enum in "tools[0].function.parameters" of the tool "f" must be`,
		`{"anyOf":{}}`:                          `"anyOf" at`,
		`{"properties":{"a":{"minimum":"1"}}}`:  `"minimum" at`,
		`{"properties":{"a":{"maxLength":-1}}}`: `"maxLength" at`,
		`{"properties":{"a":{"pattern":1}}}`:    `"pattern" at`,
		`{"type":"array","items":{}}`:           `"tools[0].function.parameters" of the tool "f" can't be matched by anything.`,
		`{"type":["object","null"]}`:            ``,
		`{"properties":{"a":{"type":["string","null"],"enum":["a",null],"minimum":0.5,"minLength":2,"required":true}}}`: ``,
		`true`: ``,
	} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			for choice, isPromise := range map[string]bool{`"auto"`: false, `"required"`: true, `{"type":"function","function":{"name":"f"}}`: true} {
				body := testkit.Scan(t, `{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":`+schema+`}}],"tool_choice":`+choice+`}`)
				_, err := ParseChat(body, request.Caps{})
				if (err == nil) != (want == "" || !isPromise) || err != nil && (err.Code != "invalid_schema" || !strings.HasPrefix(err.Message, want)) {
					t.Errorf("%s: %v, want %s", choice, err, want)
				}
			}
			body := testkit.Scan(t, `{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":`+schema+`}}]}`)
			if _, err := ParseChat(body, request.Caps{}); (err == nil) != (want == "") {
				t.Errorf("strict: %v", err)
			}
		})
	}
}
