package logs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxText bounds a text in a record, in bytes. The stack of a panic is the longest that there is.
const maxText = 8 << 10

// add adds an attribute. One with the name of an earlier one stands beside it, as in other logs.
func (f *fields) add(group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, in := range value.Group() {
			f.add(group, in)
		}
		return
	}
	if a.Key == "" {
		return
	}
	if len(f.members) > 0 {
		f.members = append(f.members, ',')
	}
	f.members = append(appendText(f.members, group+a.Key), ':')
	f.members = appendValue(f.members, value)
	if value.Kind() != slog.KindString || group != "" {
		return
	}
	switch a.Key {
	case "model":
		f.model = clip(value.String())
	case "instance":
		f.instance = clip(value.String())
	case requestField:
		f.request = clip(value.String())
	}
}

// object is the JSON object of the fields; nil: there are none.
func (f *fields) object() json.RawMessage {
	if len(f.members) == 0 {
		return nil
	}
	object := make([]byte, 0, len(f.members)+2)
	object = append(object, '{')
	object = append(object, f.members...)
	return append(object, '}')
}

func appendValue(dst []byte, v slog.Value) []byte {
	switch v.Kind() {
	case slog.KindString:
		return appendText(dst, v.String())
	case slog.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case slog.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case slog.KindFloat64:
		if n := v.Float64(); !math.IsNaN(n) && !math.IsInf(n, 0) {
			return strconv.AppendFloat(dst, n, 'g', -1, 64)
		}
		return appendText(dst, fmt.Sprint(v.Float64()))
	case slog.KindDuration:
		return appendText(dst, v.Duration().Round(roundTo(v.Duration())).String())
	case slog.KindTime:
		return appendText(dst, v.Time().UTC().Format(time.RFC3339Nano))
	default:
		return appendAny(dst, v.Any())
	}
}

// roundTo makes a duration of some digits.
func roundTo(d time.Duration) time.Duration {
	switch d = d.Abs(); {
	case d >= time.Second:
		return time.Millisecond
	case d >= time.Millisecond:
		return time.Microsecond
	default:
		return 1
	}
}

func appendAny(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case error:
		return appendText(dst, v.Error())
	case fmt.Stringer:
		return appendText(dst, v.String())
	case []string:
		dst = append(dst, '[')
		for i, text := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, text)
		}
		return append(dst, ']')
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, slog.AnyValue(item))
		}
		return append(dst, ']')
	case encoding.TextMarshaler:
		if text, err := v.MarshalText(); err == nil {
			return appendText(dst, string(text))
		}
	}
	return appendText(dst, fmt.Sprintf("%+v", value))
}

func appendText(dst []byte, text string) []byte {
	encoded, err := json.Marshal(clip(Redact(text)))
	if err != nil { // there is none for a text
		return append(dst, `""`...)
	}
	return append(dst, encoded...)
}

// clip cuts a text that is too long.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
