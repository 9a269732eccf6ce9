package jsonbody

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// bodies are requests for the fuzzing to begin with.
var bodies = []string{
	``, `{}`, ` { } `, `[]`, `null`, `{"model":"m","stream":false,"ttl":300,"messages":[{"role":"user","content":"Hello"}]}`,
	`{"model":"a","mod\u0065l":"b"}`, `{"\ud800\u0041":1,"\ud800\u0042":2}`, `{"a":01}`, `{"a":1e999}`, `{"a":-}`, `{"a":"\x"}`, "{\"a\":\"\n\"}", "{\"a\":\"\xff\"}",
	`{"messages":[{"role":"user","content":[{"type":"text","text":"é🎉"},{"type":"image_url","image_url":{"url":"data:,"}}]}],"n":1,"temperature":0.70}`,
	`{"messages":[{"role":"user","content":"a\n"},{"role":"user","content":"é"},{"role":"user","content":"b","x":"y"},{"role":"user","content":[7]}]}`,
	`{"a":[[[[[[]]]]]],"b":{"c":{"d":[true,false,null,-1.5e+3]}}}`,
	nested(`{"a":`, "1", `}`, MaxDepth), nested(`{"a":`, "1", `}`, MaxDepth+1), manyFields(MaxFields), manyFields(MaxFields + 1),
}

// FuzzScan holds Scan against encoding/json: it accepts the objects that encoding/json does, but for our limits, for bytes
// that aren't UTF-8, for half surrogate pairs, and for names given twice in an object.
func FuzzScan(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	long := strings.Repeat("text ", 30)
	for _, text := range []string{`\n\"\\\/`, "é日本🎉", `\ud83c\udf89\u0041`, `\ud83c`, "\xe6\x97", "\x80", "\n", `\x`, `"`} {
		f.Add([]byte(`{"model":"` + long + text + `","messages":[{"role":"user","content":"` + long + text + long + `"}]}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Scan(raw)
		if want := isWanted(t, raw); want != (err == nil) {
			t.Fatalf("accepted %t, want %t: %v", err == nil, want, err)
		}
		if err != nil {
			if b != nil || err.Status() != 400 || err.Message == "" || !utf8.ValidString(err.Message) {
				t.Fatalf("body %v, error %+v", b, err)
			}
			return
		}
		if diff := cmp.Diff(topLevel(t, raw), values(b)); diff != "" {
			t.Fatalf("fields (-encoding/json +Scan):\n%s", diff)
		}
		members := map[string]string{}
		for name, value := range Members(raw) {
			members[string(name)] = string(value)
		}
		if diff := cmp.Diff(values(b), members); diff != "" {
			t.Fatalf("fields (-Scan +Members):\n%s", diff)
		}
		for i, m := range slices.Collect(Elements(b.Value("messages"))) {
			if i < len(b.Messages) && string(m) != string(raw[b.Messages[i].From:b.Messages[i].To]) {
				t.Fatalf("message %d: %s", i, m)
			}
		}
		for _, m := range b.Messages { // the others make no difference
			one := string(raw[m.From:m.To])
			if alone := scanned(t, `{"messages":[`+one+`]}`); len(alone.Messages) != 1 || alone.Messages[0].Plain != m.Plain {
				t.Fatalf("%s: plain %t, but alone %+v", one, m.Plain, alone.Messages)
			}
		}
	})
}

// isWanted reports whether Scan should accept raw, by slower means.
func isWanted(tb testing.TB, raw []byte) bool {
	tb.Helper()
	if !utf8.Valid(raw) || !json.Valid(raw) || bytes.TrimLeft(raw, " \t\r\n")[0] != '{' || depth(raw) > MaxDepth {
		return false
	}
	return !hasHalfPair(raw) && !hasRepeatedName(tb, raw) && len(topLevel(tb, raw)) <= MaxFields
}

// hasRepeatedName reports whether an object in valid JSON repeats a name.
func hasRepeatedName(tb testing.TB, raw []byte) bool {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil for an array
		value bool            // the next string is a value
	}
	var open []level
	for {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		top := len(open) - 1
		name, isString := token.(string)
		if isString && top >= 0 && open[top].names != nil && !open[top].value {
			if open[top].names[name] {
				return true
			}
			open[top].names[name], open[top].value = true, true
			continue
		}
		if top >= 0 && token != json.Delim('}') && token != json.Delim(']') {
			open[top].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
		}
	}
}

// hasHalfPair reports whether valid JSON has an escape for half a surrogate pair.
func hasHalfPair(raw []byte) bool {
	high := false // the escape just before was the first half
	for i := 0; i < len(raw); i++ {
		var unit uint64
		if raw[i] == '\\' && raw[i+1] == 'u' {
			unit, _ = strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
			i += 5
		} else if raw[i] == '\\' {
			i++
		}
		isHigh, isLow := unit >= 0xD800 && unit < 0xDC00, unit >= 0xDC00 && unit < 0xE000
		if high != isLow {
			return true
		}
		high = isHigh
	}
	return high
}

// depth is how deep valid JSON is nested.
func depth(raw []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// FuzzEdit: what comes of an edit is JSON that has the changes, and each other field's bytes.
func FuzzEdit(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body), "stream", []byte("true"), "ttl")
		f.Add([]byte(body), "a", []byte(`{"include_usage":true}`), "b")
	}
	f.Fuzz(func(t *testing.T, raw []byte, key string, value []byte, removed string) {
		b, err := Scan(raw)
		if err != nil || key == removed || !isBareName(key) || !json.Valid(value) {
			return
		}
		var e Edit
		e.Set(key, string(value))
		e.Remove(removed)
		got := e.Apply(b)
		if pieces := bytes.Join(e.Pieces(b), nil); !jsonEqual(t, pieces, got) {
			t.Errorf("in pieces: %s, in one: %s", pieces, got)
		}
		var large Edit
		large.SetLarge(removed, value)
		large.SetLarge(key, value)
		large.Remove(removed)
		only := large.Only(map[string]bool{key: true})
		if again := large.Apply(b); !bytes.Equal(again, got) || !bytes.Equal(large.Value(b, key), value) || !bytes.Equal(only.Value(b, key), value) {
			t.Errorf("as a large value: %s, else %s", again, got)
		}
		if pieces := bytes.Join(large.Pieces(b), nil); !jsonEqual(t, pieces, got) {
			t.Errorf("as a large value, in pieces: %s, in one: %s", pieces, got)
		}
		if !json.Valid(got) {
			t.Fatalf("not JSON: %s", got)
		}
		want := topLevel(t, raw)
		want[key] = string(bytes.Trim(value, " \t\r\n"))
		delete(want, removed)
		if diff := cmp.Diff(want, topLevel(t, got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// isBareName reports whether a name needs no escapes. Ours don't, and Edit writes none.
func isBareName(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' })
}

// FuzzAppendString: any text is written as encoding/json does.
func FuzzAppendString(f *testing.F) {
	for _, text := range []string{"", "a\"b\\c\n\x00", "\u2028\u2029é日本🎉", "\xff\xe6\x97 and more text"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := string(AppendString(nil, text)), string(AppendJSON(nil, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	})
}

// FuzzUnquote: the text of a string is what encoding/json reads.
func FuzzUnquote(f *testing.F) {
	for _, inside := range []string{``, `\"\\\/\b\f\n\r\t`, `a\u0041\uD83C\uDF89b\n\n`, `\ud83c`, `\ud83c\u0041`, `\uDF89é`, `\u00e9\u`, "日本\\n"} {
		f.Add(inside)
	}
	f.Fuzz(func(t *testing.T, inside string) {
		quoted := []byte(`"` + inside + `"`)
		var want string
		if !utf8.ValidString(inside) || json.Unmarshal(quoted, &want) != nil || hasHalfPair(quoted) {
			return
		}
		if got := Unquote(quoted); got != want {
			t.Errorf("%s: %q, want %q", quoted, got, want)
		}
	})
}
