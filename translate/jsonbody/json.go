package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// AppendComma appends the comma before the next element or member of JSON. It is left out at the beginning and after an opening bracket.
func AppendComma(out []byte) []byte {
	if n := len(out); n > 0 && out[n-1] != '[' && out[n-1] != '{' {
		out = append(out, ',')
	}
	return out
}

// AppendJSON appends the JSON of v without escaping <, > and &. It panics if v can't be encoded: v must be of one of our types.
func AppendJSON(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// OrNull returns a text for JSON, in which the empty one is null.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Unquote returns the text of a JSON string, which was scanned. It is empty for any other value.
func Unquote(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return string(Unquoted(value))
}

// Unquoted returns the text of a JSON string that was scanned. It is a part of value if there are no escapes.
func Unquoted(value []byte) []byte {
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	return translate.AppendUnescaped(make([]byte, 0, len(inside)), inside)
}

// AtMost returns the elements of an array, but no more than one above the most that there may be: a hostile array has millions. null has
// none, and any other value is its own only element.
func AtMost(most int, v gjson.Result) (elements []gjson.Result) {
	switch {
	case v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return []gjson.Result{v}
	}
	v.ForEach(func(_, element gjson.Result) bool {
		elements = append(elements, element)
		return len(elements) <= most
	})
	return elements
}

// Elements returns the JSON of the elements of an array that was scanned, in order. They are parts of it.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		w := walk{array, 0}
		for w.take('[') || w.take(',') {
			if value := w.value(); len(value) == 0 || !yield(value) { // an empty array has only its end
				return
			}
		}
	}
}

// ElementsAtMost returns the elements of an array, but no more than one above the most that there may be. Any other value has none.
func ElementsAtMost(most int, array []byte) (all [][]byte) {
	for element := range Elements(array) {
		if all = append(all, element); len(all) > most {
			break
		}
	}
	return all
}

// Members returns the names of an object's members and their JSON, in order. The object was scanned; any other value has no
// members. Both are parts of it, except names with escapes.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		w := walk{object, 0}
		for w.take('{') || w.take(',') {
			name := w.value()
			if len(name) < len(`""`) || !w.take(':') || !yield(Unquoted(name), w.value()) {
				return
			}
		}
	}
}

// Object has the members of an object that was scanned.
type Object []struct{ name, value []byte }

// ObjectOf returns the members of an object. Any other value has none.
func ObjectOf(value []byte) Object {
	o := make(Object, 0, 8)
	for name, value := range Members(value) {
		o = append(o, struct{ name, value []byte }{name, value})
	}
	return o
}

// Get returns the JSON of a member, a part of the object's; nil if it is absent.
func (o Object) Get(name string) []byte {
	for i := range o {
		if string(o[i].name) == name {
			return o[i].value
		}
	}
	return nil
}

// Reader reads an object at a place of a request. It keeps the first error.
type Reader struct {
	Where string // empty: it is the body
	Err   *translate.Error
	get   func(name string) []byte
}

// Read begins to read an object, which was scanned.
func Read(where string, object []byte) *Reader {
	r := &Reader{Where: where, get: ObjectOf(object).Get}
	if object[0] != '{' {
		r.Err = WrongJSON(where, "an object", object)
	}
	return r
}

// Get returns the JSON of a member; nil if it is absent.
func (r *Reader) Get(name string) []byte { return r.get(name) }

// At returns the place of a member.
func (r *Reader) At(name string) string {
	if r.Where == "" {
		return name
	}
	return r.Where + "." + name
}

// Refuse keeps an error unless there was one before.
func (r *Reader) Refuse(err *translate.Error) {
	if r.Err == nil {
		r.Err = err
	}
}

// Quoted returns the JSON of a member that is a string if it is given; nil if it isn't.
func (r *Reader) Quoted(name string) []byte {
	switch value := r.Get(name); {
	case !IsGiven(value):
		return nil
	case value[0] != '"':
		r.Refuse(WrongJSON(r.At(name), "a string", value))
		return nil
	default:
		return value
	}
}

// Text is the text of [Reader.Quoted].
func (r *Reader) Text(name string) string { return Unquote(r.Quoted(name)) }

// Given reads a string that may be empty, but has to be given.
func (r *Reader) Given(name string) string {
	value := r.Quoted(name)
	if value == nil {
		r.Refuse(translate.Missing(r.At(name)))
	}
	return Unquote(value)
}

// Required reads a string that isn't empty.
func (r *Reader) Required(name string) string {
	text := r.Given(name)
	if text == "" {
		r.Refuse(translate.Missing(r.At(name)))
	}
	return text
}

// Short reads a name or an id, which may be absent.
func (r *Reader) Short(name string) string {
	text := r.Text(name)
	if len(text) > MaxNameLength {
		r.Refuse(TooLong(r.At(name)))
	}
	return text
}

// Name is [Reader.Short] of one that is required.
func (r *Reader) Name(name string) string {
	r.Required(name)
	return r.Short(name)
}

// MaybeBool reads a member that is a boolean if it is given; nil: it isn't.
func (r *Reader) MaybeBool(name string) *bool {
	if !IsGiven(r.Get(name)) {
		return nil
	}
	return new(r.Bool(name))
}

// Bool reads a member that is a boolean if it is given.
func (r *Reader) Bool(name string) bool { return r.BoolOr(name, false) }

// BoolOr is Bool of a member that may not be false if it is absent.
func (r *Reader) BoolOr(name string, absent bool) bool {
	value := r.Get(name)
	if !IsGiven(value) {
		return absent
	}
	if TypeOf(value) != ABoolean {
		r.Refuse(WrongJSON(r.At(name), "a boolean", value))
	}
	return string(value) == "true"
}

// maxWhole is the largest whole number that JSON carries safely. Above it, a float64 skips numbers.
const maxWhole = 1 << 53

// Int reads a member that is a whole number if it is given.
func (r *Reader) Int(name string) (n int, given bool) {
	v := gjson.ParseBytes(r.Get(name))
	switch {
	case v.Type == gjson.Null:
		return 0, false
	case v.Type == gjson.Number && v.Num == math.Trunc(v.Num) && math.Abs(v.Num) <= maxWhole:
		return int(v.Num), true
	default:
		r.Refuse(WrongType(r.At(name), "a whole number", v))
		return 0, false
	}
}

// walk goes through JSON that was scanned. It searches only for the ends of strings, and tests nothing.
type walk struct {
	data []byte
	pos  int
}

// take skips white space, and then c. It reports whether c was there.
func (w *walk) take(c byte) bool {
	w.space()
	if w.pos >= len(w.data) || w.data[w.pos] != c {
		return false
	}
	w.pos++
	return true
}

func (w *walk) space() {
	for w.pos < len(w.data) && w.data[w.pos] <= ' ' {
		w.pos++
	}
}

// value returns the next value. It is empty where an array or an object ends.
func (w *walk) value() []byte {
	w.space()
	from := w.pos
	for depth := 0; w.pos < len(w.data); {
		switch w.data[w.pos] {
		case '"':
			w.str()
			if depth == 0 {
				return w.data[from:w.pos]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				w.pos++
			}
			if depth <= 0 {
				return w.data[from:w.pos]
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return w.data[from:w.pos]
			}
		}
		w.pos++
	}
	return w.data[from:]
}

func (w *walk) str() {
	for w.pos++; ; w.pos++ {
		i := bytes.IndexByte(w.data[w.pos:], '"')
		if i < 0 {
			w.pos = len(w.data)
			return
		}
		w.pos += i
		before := w.pos
		for w.data[before-1] == '\\' {
			before--
		}
		if (w.pos-before)%2 == 0 { // otherwise the quote is escaped
			w.pos++
			return
		}
	}
}

// AppendLogprob appends the log probabilities of one token, as an engine gives them, with exactly the fields that OpenAI's types have.
// With onlyChosen, those of other tokens are left out. noBytes stands for bytes that the engine doesn't give.
func AppendLogprob(dst []byte, token gjson.Result, onlyChosen bool, noBytes string) []byte {
	dst = appendToken(dst, token, noBytes)
	dst = append(dst, `,"top_logprobs":[`...)
	if !onlyChosen {
		for _, other := range token.Get("top_logprobs").Array() {
			dst = append(appendToken(AppendComma(dst), other, noBytes), '}')
		}
	}
	return append(dst, "]}"...)
}

func appendToken(dst []byte, token gjson.Result, noBytes string) []byte {
	dst = AppendString(append(dst, `{"token":`...), token.Get("token").Str)
	dst = append(append(dst, `,"logprob":`...), Logprob(token.Get("logprob"))...)
	dst = append(dst, `,"bytes":`...)
	if bytes := token.Get("bytes"); bytes.IsArray() {
		return append(dst, bytes.Raw...)
	}
	return append(dst, noBytes...)
}

// unlikely stands for the logarithm of 0, which JSON can't represent.
const unlikely = "-9999"

// Logprob returns a log probability as the engine wrote it.
func Logprob(v gjson.Result) json.Number {
	if v.Type != gjson.Number {
		return unlikely
	}
	return json.Number(v.Raw)
}
