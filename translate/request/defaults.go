package request

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// WithDefaults returns a copy of a client's body with the defaults of fields that it lacks, and without chosenBy, the field that chose them; empty: none did.
// own reports whether the client has set a field, so that its default has no effect.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage, own func(name string) bool) (*jsonbody.Body, *translate.Error) {
	raw, err := b.Raw, error(nil)
	if chosenBy != "" {
		raw, err = sjson.DeleteBytes(raw, gjson.Escape(chosenBy))
	}
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if err == nil && name != chosenBy && !own(name) {
			raw, err = sjson.SetRawBytes(raw, gjson.Escape(name), defaults[name])
		}
	}
	if err != nil { // the names were checked
		return nil, translate.Invalid("invalid_preset", chosenBy, "The defaults of the request can't be set: "+err.Error()+".")
	}
	return jsonbody.Scan(raw)
}
