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
		for _, before := range []int{0, 1, 2, 3, 61, 62, 63, 64, 65, 200} {
			for _, after := range []int{0, 1, 63, 64, 65, 200} {
				value := []byte(`"` + strings.Repeat("a", before) + text + strings.Repeat("b", after) + `"`)
				body, err := Scan(slices.Concat([]byte(`{"a":`), value, []byte(`}`)))
				if err != nil {
					t.Fatal(err)
				}
				if body.IsCanonical(body.Value("a")) != want {
					t.Fatalf("%s: %t", value, !want)
				}
			}
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
		if is := body.IsCanonical(value); is && written != string(value) || !is && written == string(value) && !strings.Contains(written, `\u`) {
			t.Errorf("%s: %t, written as %s", value, is, written)
		}
	})
}
