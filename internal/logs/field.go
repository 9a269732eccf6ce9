package logs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
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
	f.members = append(appendJSON(f.members, group+a.Key), ':')
	f.members = appendJSON(f.members, plain(value.Any()))
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

func appendJSON(dst []byte, value any) []byte {
	encoded, _ := json.Marshal(value) // what plain returns can be encoded
	return append(dst, encoded...)
}

// plain returns a value as a record has it: a number, a truth value, a list or a text without secrets.
func plain(value any) any {
	switch v := value.(type) {
	case nil, bool, int64, uint64:
		return v
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	case string:
		return clip(Redact(v))
	case time.Duration:
		switch long := v.Abs(); { // some digits are enough
		case long >= time.Second:
			v = v.Round(time.Millisecond)
		case long >= time.Millisecond:
			v = v.Round(time.Microsecond)
		}
		return v.String()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case error:
		return plain(v.Error())
	case fmt.Stringer:
		return plain(v.String())
	case []string:
		list := make([]any, len(v))
		for i, text := range v {
			list[i] = plain(text)
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(slog.AnyValue(item).Any())
		}
		return list
	}
	return plain(fmt.Sprintf("%+v", value))
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
