package mlxlm

import (
	"math"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// source is what a request is written from: a body and its changes.
type source struct {
	body *jsonbody.Body
	edit *jsonbody.Edit
}

// get returns the value of a field. It doesn't exist if the field is absent or null.
func (s source) get(name string) gjson.Result {
	raw := s.edit.Value(s.body, name)
	if !jsonbody.IsGiven(raw) {
		return gjson.Result{}
	}
	return gjson.ParseBytes(raw)
}

// number returns a number from least to most, which a larger or smaller one is moved to.
func (s source) number(name string, least, most float64) (x float64, given bool) {
	v := s.get(name)
	if v.Type != gjson.Number || math.IsNaN(v.Num) {
		return 0, false
	}
	return min(max(v.Num, least), most), true
}

// whole returns a whole number from least to most.
func (s source) whole(name string, least, most int) (n int, given bool) {
	x, given := s.number(name, float64(least), float64(most))
	return int(x), given
}

// limit returns the maximum number of generated tokens; negative if there is none.
func (s source) limit() int {
	for _, name := range request.Limits {
		if n, given := s.whole(name, -1, noLimit); given {
			return n
		}
	}
	return -1
}
