package request

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

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
