package request

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Field checks the value of a field. It sets in the edit what an engine is sent instead.
type Field func(v gjson.Result, caps *Caps, e *jsonbody.Edit) *translate.Error

// Fields has the checks of fields by name.
type Fields map[string]Field

// With returns the union of two sets of fields.
func (f Fields) With(more Fields) Fields {
	all := maps.Clone(f)
	maps.Copy(all, more)
	return all
}

func (f Fields) without(names ...string) Fields {
	rest := maps.Clone(f)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// NamesOf returns the set of some names, and of those of sets of fields.
func NamesOf(names []string, sets ...Fields) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	for _, fields := range sets {
		for name := range fields {
			all[name] = true
		}
	}
	return all
}

// CheckFields checks the fields of a body that are in one of the sets. e receives the changes for the engine.
func CheckFields(body *jsonbody.Body, caps *Caps, e *jsonbody.Edit, sets ...Fields) *translate.Error {
	for name, raw := range body.All() {
		for _, fields := range sets {
			if check := fields[string(name)]; check != nil && jsonbody.IsGiven(raw) {
				if err := check(gjson.ParseBytes(raw), caps, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// CopyFields checks fields of a body, and sets in the edit of another body those that a chat has. names are of fields in Sampling.
func CopyFields(body *jsonbody.Body, e *jsonbody.Edit, numbers []Number, names ...string) *translate.Error {
	for _, f := range numbers {
		v := body.Get(f.Name)
		if v.Type == gjson.Null {
			continue
		}
		if err := f.Check(v); err != nil {
			return err
		}
		if f.As != "" {
			e.Set(f.As, v.Raw)
		}
	}
	for key, raw := range body.All() {
		name := string(key)
		if !slices.Contains(names, name) || !jsonbody.IsGiven(raw) {
			continue
		}
		if err := Sampling[name](gjson.ParseBytes(raw), &Caps{}, e); err != nil {
			return err
		}
		if !e.Has(name) {
			e.Set(name, string(raw))
		}
	}
	return nil
}

// Number is a numeric field of a request.
type Number struct {
	Name     string
	Min, Max float64 // inclusive, unless Above
	Above    bool    // Min is exclusive
	Whole    bool
	As       string // name of the field in a chat request; empty if there is none
}

// Check rejects a value that has the wrong type or is out of range.
func (f *Number) Check(v gjson.Result) *translate.Error {
	isWrongType := v.Type != gjson.Number || (f.Whole && v.Num != math.Trunc(v.Num))
	switch {
	case isWrongType && f.Whole:
		return jsonbody.WrongType(f.Name, "a whole number", v)
	case isWrongType:
		return jsonbody.WrongType(f.Name, "a number", v)
	case v.Num >= f.Min && v.Num <= f.Max && (!f.Above || v.Num > f.Min):
		return nil
	}
	wanted := "from " + number(f.Min) + " to " + number(f.Max)
	if f.Above {
		wanted = "above " + number(f.Min) + ", and at most " + number(f.Max)
	}
	return translate.BadValue(f.Name, "must be %s, not %s.", wanted, v.Raw)
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Numbers returns the checks of numeric fields.
func Numbers(list ...Number) Fields {
	fields := make(Fields, len(list))
	for _, n := range list {
		fields[n.Name] = func(v gjson.Result, _ *Caps, _ *jsonbody.Edit) *translate.Error { return n.Check(v) }
	}
	return fields
}

// WithDefaults returns a copy of a client's body with the defaults of fields that it lacks, and without chosenBy, the field that chose
// them; empty: none did. own reports whether the client has set a field, so that its default has no effect.
func WithDefaults(
	b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage, own func(name string) bool,
) (*jsonbody.Body, *translate.Error) {
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
