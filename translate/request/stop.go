package request

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of the stop strings. Each is searched for after each token.
const (
	MaxStops     = 256
	MaxStopBytes = 64 << 10 // of all stop strings
)

// ParseStops parses the field "stop": a string, or an array of strings. Empty strings are ignored.
func ParseStops(body *jsonbody.Body) (stops []string, _ *translate.Error) {
	v := body.Get("stop")
	if v.Type == gjson.Null {
		return nil, nil
	}
	if v.Type != gjson.String && !v.IsArray() {
		return nil, jsonbody.WrongType("stop", "a string or an array", v)
	}
	var bad *translate.Error
	v.ForEach(func(_, s gjson.Result) bool { // a string is its own only element
		if s.Type != gjson.String {
			bad = translate.Invalid("invalid_type", "stop", `"stop" must be a string or an array of strings; it has `+jsonbody.TypeName(s)+`.`)
		} else if s.Str != "" {
			stops = append(stops, s.Str)
		}
		return bad == nil && len(stops) <= MaxStops
	})
	switch {
	case bad != nil:
		return nil, bad
	case !AreStops(stops):
		return nil, translate.Invalid("invalid_value", "stop", `"stop" must hold at most `+strconv.Itoa(MaxStops)+` strings, of `+strconv.Itoa(MaxStopBytes)+` bytes in all.`)
	}
	return stops, nil
}

// AreStops reports whether stop strings are within the limits.
func AreStops(stops []string) bool {
	size := 0
	for _, s := range stops {
		size += len(s)
	}
	return len(stops) <= MaxStops && size <= MaxStopBytes
}
