package openai

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/internal/testkit"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// The schemas of all tools count together.
func TestSchema_ToolsCountTogether(t *testing.T) {
	t.Parallel()
	tool := `{"type":"function","function":{"name":"a","parameters":` + testkit.Properties(200, `{"type":"string"}`, false) + `}}`
	if _, err := readTools(gjson.Parse("[" + tool + "," + tool + "]")); err != nil {
		t.Error(err)
	}
	_, err := readTools(gjson.Parse("[" + tool + "," + tool + "," + tool + "]"))
	if err == nil || err.Param != "tools[2].function.parameters" {
		t.Errorf("error %v, want one about the third tool", err)
	}
}

// TestSchema_WrongShapesAreRefused: llama-server would refuse them, but only once it is loaded.
func TestSchema_WrongShapesAreRefused(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":5}`:                            `"type" in "tools[0].function.parameters" must be a string or an array of strings, not the number 5.`,
		`{"type":[]}`:                           `"type" in`,
		`{"properties":[]}`:                     `"properties" in`,
		`{"properties":{"a":{"enum":[]}}}`:      `"enum" in "tools[0].function.parameters" must be an array that isn't empty`,
		`{"properties":{"a":{"enum":"a"}}}`:     `"enum" in`,
		`{"anyOf":{}}`:                          `"anyOf" in`,
		`{"properties":{"a":{"minimum":"1"}}}`:  `"minimum" in`,
		`{"properties":{"a":{"maxLength":-1}}}`: `"maxLength" in`,
		`{"properties":{"a":{"pattern":1}}}`:    `"pattern" in`,
		`{"type":"array","items":{}}`:           `The "type" of "tools[0].function.parameters" must be "object", not "array".`,
		`{"type":["array","null"]}`:             `The "type" of`,
		`{"type":["object","null"]}`:            ``,
		`{"properties":{"a":{"type":["string","null"],"enum":["a",null],"minimum":0.5,"minLength":2,"required":true}}}`: ``,
	} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			body := testkit.Scan(t, `{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":`+schema+`}}]}`)
			_, err := ParseChat(body, request.Caps{})
			if (err == nil) != (want == "") || err != nil && (err.Code != "invalid_schema" || !strings.HasPrefix(err.Message, want)) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}
