package jsonbody

import (
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Limits of a request's JSON that no honest client comes near. The depth keeps a hostile body from exhausting the stack;
// the number of fields keeps the search for duplicates short.
const (
	MaxDepth  = 256
	MaxFields = 256
)

// maxWhole is the largest whole number that JSON carries safely: behind it, a float64 leaves numbers out.
const maxWhole = 1 << 53

// Body is a request's JSON object, scanned once: valid throughout, its top-level fields found.
type Body struct {
	Raw      []byte
	fields   []field
	Messages []Message // empty unless the field "messages" is an array
}

// field is where a top-level field stands in Raw. from is its key's opening quote; value and to bound its value.
type field struct {
	key             []byte
	from, value, to int
}

// Scan checks that raw is one JSON object in UTF-8 in which no object has a name twice, in one pass. Raw is kept, not copied.
func Scan(raw []byte) (*Body, *translate.Error) {
	s := Scanner{Data: raw}
	if s.Space(); s.Pos >= len(raw) {
		return nil, translate.Invalid("invalid_json", "", "The request body is empty; a JSON object is expected.")
	}
	if !utf8.Valid(raw) {
		return nil, translate.Invalid("invalid_json", "", "The request body is not valid UTF-8.")
	}
	if raw[s.Pos] != '{' {
		return nil, translate.Invalid("invalid_json", "", "The request body must be a JSON object.")
	}
	b := &Body{Raw: raw, fields: make([]field, 0, 12)}
	var names [manyNames][]byte // of most bodies, all that are open at a time
	s.names, s.list = names[:0], &b.Messages
	if err := b.scanFields(&s); err != nil {
		return nil, err
	}
	if s.Space(); s.Pos < len(raw) {
		return nil, s.unexpected("after the JSON object")
	}
	return b, nil
}

func (b *Body) scanFields(s *Scanner) *translate.Error {
	s.Pos++ // the opening brace
	if s.Space(); s.Take('}') {
		return nil
	}
	for {
		f, err := s.field()
		if err != nil {
			return err
		}
		if b.has(string(f.key)) {
			key := string(f.key)
			return translate.Invalid("duplicate_field", key, `"`+key+`" is given twice in the request body.`)
		}
		if len(b.fields) == MaxFields {
			return translate.Invalid("invalid_json", "", "The request body has more than "+strconv.Itoa(MaxFields)+" fields.")
		}
		b.fields = append(b.fields, f)
		s.Space()
		if s.Take('}') {
			return nil
		}
		if !s.Take(',') {
			return s.unexpected("where ',' or '}' is expected")
		}
		s.Space()
	}
}

// All gives the names of the top-level fields and their JSON, in order. Both are parts of Raw, but for names with escapes.
func (b *Body) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range b.fields {
			if f := &b.fields[i]; !yield(f.key, b.Raw[f.value:f.to]) {
				return
			}
		}
	}
}

// Value is the JSON of a top-level field as it stands in Raw, nil where the field is absent.
func (b *Body) Value(key string) []byte {
	for i := range b.fields {
		if f := &b.fields[i]; string(f.key) == key {
			return b.Raw[f.value:f.to]
		}
	}
	return nil
}

// Get is the value of a top-level field, copied. It doesn't exist where the field is absent.
func (b *Body) Get(key string) gjson.Result { return gjson.ParseBytes(b.Value(key)) }

func (b *Body) has(key string) bool { return b.Value(key) != nil }

// String is a top-level field that must be a string where it is given; null counts as absent.
func (b *Body) String(key string) (string, *translate.Error) {
	switch v := b.Get(key); v.Type {
	case gjson.String:
		return v.Str, nil
	case gjson.Null:
		return "", nil
	default:
		return "", WrongType(key, "a string", v)
	}
}

// Bool is a top-level field that must be a boolean where it is given; null counts as absent.
func (b *Body) Bool(key string) (bool, *translate.Error) {
	switch v := b.Get(key); v.Type {
	case gjson.True, gjson.False:
		return v.Type == gjson.True, nil
	case gjson.Null:
		return false, nil
	default:
		return false, WrongType(key, "a boolean", v)
	}
}

// Int is a top-level field that must be a whole number where it is given; null counts as absent.
func (b *Body) Int(key string) (n int, given bool, _ *translate.Error) {
	v := b.Get(key)
	switch {
	case v.Type == gjson.Null:
		return 0, false, nil
	case v.Type == gjson.Number && v.Num == math.Trunc(v.Num) && math.Abs(v.Num) <= maxWhole:
		return int(v.Num), true, nil
	default:
		return 0, false, WrongType(key, "a whole number", v)
	}
}

// Edit is a set of changes to a body's top-level fields. The zero value changes nothing.
type Edit struct {
	changes []change
	// only has the names of the fields that stay if they aren't changed and aren't null; nil: all stay.
	only map[string]bool
}

// keeps tells whether a field stays that isn't changed.
func (e *Edit) keeps(b *Body, f *field) bool {
	return e.only == nil || e.only[string(f.key)] && IsGiven(b.Raw[f.value:f.to])
}

type change struct {
	key, value string // an empty value removes the field
}

// Set gives a field a value, which is JSON. Of several changes of one field the last counts.
func (e *Edit) Set(key, value string) {
	if c := e.find(key); c != nil {
		c.value = value
		return
	}
	e.changes = append(e.changes, change{key, value})
}

// Remove takes a field away.
func (e *Edit) Remove(key string) { e.Set(key, "") }

// Has tells whether the edit changes a field.
func (e *Edit) Has(key string) bool { return e.find(key) != nil }

// Only is a copy of the edit that leaves nothing but the fields in names: those that it sets, and of the others those that
// aren't null.
func (e *Edit) Only(names map[string]bool) Edit {
	only := Edit{make([]change, 0, len(e.changes)+4), names}
	for _, c := range e.changes {
		if c.value == "" || names[c.key] {
			only.changes = append(only.changes, c)
		}
	}
	return only
}

// Apply is the body's bytes with the changes made: one copy, in which everything that isn't changed is as it was.
func (e *Edit) Apply(b *Body) []byte {
	grow := 2
	for _, c := range e.changes {
		grow += len(c.key) + len(c.value) + 4
	}
	out := make([]byte, 0, len(b.Raw)+grow)
	out = append(out, '{')
	for i := range b.fields {
		f := &b.fields[i]
		c := e.find(string(f.key))
		if c != nil && c.value == "" || c == nil && !e.keeps(b, f) {
			continue
		}
		out = AppendComma(out)
		out = append(out, b.Raw[f.from:f.value]...)
		if c != nil {
			out = append(out, c.value...)
		} else {
			out = append(out, b.Raw[f.value:f.to]...)
		}
	}
	for _, c := range e.changes {
		if c.value != "" && !b.has(c.key) {
			out = AppendComma(out)
			out = append(out, '"')
			out = append(out, c.key...)
			out = append(out, '"', ':')
			out = append(out, c.value...)
		}
	}
	return append(out, '}')
}

// Pieces is what Apply makes, without the copy: what isn't changed is as it stands in Raw.
func (e *Edit) Pieces(b *Body) [][]byte {
	pieces := append(make([][]byte, 0, 8), openingBrace)
	run, to := -1, 0 // where in Raw the piece begins that is being put together, and where its last field ends; -1: there is none
	end := func(at int) {
		if run >= 0 {
			pieces, run = append(pieces, b.Raw[run:at]), -1
		}
	}
	for i := range b.fields {
		f := &b.fields[i]
		c := e.find(string(f.key))
		if c != nil && c.value == "" || c == nil && !e.keeps(b, f) {
			end(to)
			continue
		}
		if run < 0 {
			if len(pieces) > 1 {
				pieces = append(pieces, comma)
			}
			run = f.from
		}
		to = f.to
		if c != nil {
			end(f.value)
			pieces = append(pieces, []byte(c.value))
		}
	}
	end(to)
	return append(pieces, e.tail(b, len(pieces) > 1))
}

// tail is the fields that are new, and the closing brace.
func (e *Edit) tail(b *Body, needsComma bool) []byte {
	grow := 2
	for _, c := range e.changes {
		grow += len(c.key) + len(c.value) + 4
	}
	tail := make([]byte, 0, grow)
	for _, c := range e.changes {
		if c.value == "" || b.has(c.key) {
			continue
		}
		if needsComma {
			tail = append(tail, ',')
		}
		needsComma = true
		tail = append(append(append(tail, '"'), c.key...), '"', ':')
		tail = append(tail, c.value...)
	}
	return append(tail, '}')
}

func (e *Edit) find(key string) *change {
	for i := range e.changes {
		if e.changes[i].key == key {
			return &e.changes[i]
		}
	}
	return nil
}

var (
	comma        = []byte{','}
	openingBrace = []byte{'{'}
)

// Dropped are the names of a body's fields that an edit leaves out.
func (e *Edit) Dropped(body *Body) []string {
	var names []string
	for i := range body.fields {
		if f := &body.fields[i]; e.find(string(f.key)) == nil && !e.keeps(body, f) {
			names = append(names, strings.ToValidUTF8(string(f.key), ""))
		}
	}
	return names
}
