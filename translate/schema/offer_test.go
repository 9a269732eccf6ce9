package schema

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// TestOffer: what an engine can't express is left out, and the rest stays as it is.
func TestOffer(t *testing.T) {
	t.Parallel()
	in := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	for given, want := range map[string]string{
		`{ "type" : "object" }`:              `{ "type" : "object" }`,
		in(`true`):                           in(`{}`),
		in(`false`):                          `{"type":"object","properties":{}}`,
		in(`null`):                           `{"type":"object","properties":{}}`,
		in(`{"items":true}`):                 in(`{"items":{}}`),
		in(`{"items":false,"default":null}`): in(`{"default":null}`),
		in(`{"type":"any"}`):                 in(`{}`),
		in(`{"type":"STRING"}`):              in(`{"type":"string"}`),
		in(`{"type":"file"}`):                in(`{}`),
		in(`{"type":[]}`):                    in(`{}`),
		in(`{"type":["string","file"]}`):     in(`{"type":["string"]}`),
		in(`{"enum":[]}`):                    in(`{}`),
		in(`{"type":"integer","maximum":1e300,"minimum":2}`):           in(`{"type":"integer"}`),
		in(`{"type":"integer","minimum":1e17}`):                        in(`{"type":"integer"}`),
		in(`{"type":"integer","minimum":0.5,"maximum":0.7}`):           in(`{"type":"integer"}`),
		in(`{"type":"integer","minimum":1,"maximum":10}`):              in(`{"type":"integer","minimum":1,"maximum":10}`),
		in(`{"enum":[-1e400]}`):                                        in(`{"enum":[-1.7976931348623157e+308]}`),
		in(`{"minLength":3,"maxLength":2}`):                            in(`{}`),
		in(`{"minItems":3,"maxItems":2,"items":{}}`):                   in(`{"items":{}}`),
		in(`{"maxItems":0,"items":{}}`):                                in(`{"items":{}}`),
		in(`{"minItems":5000}`):                                        in(`{}`),
		in(`{"pattern":"^\\d$"}`):                                      in(`{"pattern":"^[0-9]$"}`),
		in(`{"pattern":"^(?!a)"}`):                                     in(`{}`),
		in(`{"pattern":"a{3,2}"}`):                                     in(`{}`),
		in(`{"pattern":"^a-z$"}`):                                      in(`{"pattern":"^a-z$"}`),
		in(`{"format":5,"required":true}`):                             in(`{}`),
		in(`{"$ref":"#/$defs/a~1b"}`):                                  in(`{}`),
		in(`{"$ref":"#/$defs/x","minimum":0.5,"x-more":{"a":[1]}}`):    in(`{"minimum":0.5,"x-more":{"a":[1]}}`),
		`{"type":"array"}`:                                             `{"type":"object","description":"An object that matches the JSON schema {\"type\":\"array\"}"}`,
		`{"type":["array","object"]}`:                                  `{"type":["array","object"]}`,
		`true`:                                                         ``,
		`{"properties":{"a/b":{"$ref":"#/properties/c~1d"},"c/d":{}}}`: `{"properties":{"a/b":{"$ref":"#/$defs/definition1"},"c/d":{}},"$defs":{"definition1":{}}}`,
		`{"properties":{"a":{"$ref":"#"}}}`:                            `{"properties":{"a":{"$ref":"#/$defs/definition1"}},"$defs":{"definition1":{"properties":{"a":{"$ref":"#/$defs/definition1"}}}}}`,
		`{"properties":{"a^":{}},"additionalProperties":true}`:         `{"properties":{"a^":{}}}`,
		`{"$ref":"#"}`:                                                 `{}`,
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			if got := Offer(gjson.Parse(given), new(Work)); got != want {
				t.Errorf("%s\nnot %s", got, want)
			}
		})
	}
}

// TestOffer_IsBounded: a schema that costs too much is a text for the model, or nothing.
func TestOffer_IsBounded(t *testing.T) {
	t.Parallel()
	text := `{"type":"string"}`
	deep := strings.Repeat(`{"properties":{"a":`, 10_000) + `{}` + strings.Repeat(`}}`, 10_000)
	for name, schema := range map[string]string{
		"deep": deep, "doubling": doubling(40, "allOf"), "optional": testkit.Properties(400, text, false), "large": `{"description":"` + strings.Repeat("a", 1<<20) + `"}`,
		"many": testkit.Properties(20_000, text, true),
	} {
		got := Offer(gjson.Parse(schema), new(Work))
		if len(got) > 2*maxTold || !gjson.Valid(got) {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	var work Work
	tool := testkit.Properties(200, text, false)
	for i := range 4 {
		if got := Offer(gjson.Parse(tool), &work); (got == tool) != (i < 2) {
			t.Errorf("%d: %.100s", i, got)
		}
	}
}
