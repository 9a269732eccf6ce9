package jsonbody

import (
	"slices"
	"strings"
	"testing"
)

func TestIsCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		``: true, `a/b//`: true, `\n\t\"\\\b\f\r`: true, `é中😀`: true, `“x”`: true, `\\/`: true, `\\\\/a`: true, `C:\\u0041`: true,
		`\u0041`: false, `\u2028`: false, `\ud83d\ude00`: false, `\/`: false, `a\/b`: false, `//\/`: false, `\\\/`: false, "\u2028": false, "“\u2029": false,
	} {
		if value := []byte(`"` + text + `"`); IsCanonical(value) != want {
			t.Errorf("%s: %t", value, !want)
		}
	}
}

// FuzzIsCanonical checks that a canonical string is what AppendString makes of its text.
func FuzzIsCanonical(f *testing.F) {
	for _, text := range []string{`a`, `\\/`, `\/`, `\u0041`, "\u2028", `“”`, strings.Repeat(`x\n`, 50) + `\u000a`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value := append(append([]byte{'"'}, text...), '"')
		body, err := Scan(slices.Concat([]byte(`{"a":`), value, []byte(`}`)))
		if err != nil || len(body.Value("a")) != len(value) {
			return
		}
		written := string(AppendString(nil, Unquote(value)))
		if is := IsCanonical(value); is && written != string(value) || !is && written == string(value) && !strings.Contains(written, `\u`) {
			t.Errorf("%s: %t, written as %s", value, is, written)
		}
	})
}
