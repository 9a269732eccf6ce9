package jsonbody

import (
	"testing"
	"unicode/utf8"
)

// TestScan_AnyCharacter: characters of two and three bytes are read in another way than the others, and at the end of a body. Whatever two
// bytes follow a first one, the text is valid if utf8 says so.
func TestScan_AnyCharacter(t *testing.T) {
	t.Parallel()
	for first := 0x80; first < 256; first++ {
		for second := 0x70; second < 256; second++ {
			for _, rest := range []string{"", "a", "\x80", "\xbf", "\x80\x80", "\xbf\xbf", "\xc0", "é", "\x80é"} {
				text := string([]byte{byte(first), byte(second)}) + rest
				for _, body := range []string{`{"a":"` + text + `"}`, `{"a":"` + text + `b"}`, `{"a":"` + text + `bcdefgh"}`} {
					if _, err := Scan([]byte(body)); (err == nil) != utf8.ValidString(text) {
						t.Fatalf("%q: %v", body, err)
					}
				}
			}
		}
	}
}

// TestScanner_LenientTakesAnyBytes: an engine's texts may have halves of characters.
func TestScanner_LenientTakesAnyBytes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\xff", "é\xe6\x97", "\xc0\xaf and more than eight", `\ud800`, "\xe6\x97\xa5\x80"} {
		if !IsObject([]byte(`{"a":"` + text + `"}`)) {
			t.Errorf("%q is refused", text)
		}
	}
}

// TestAppendString: texts are written as encoding/json does.
func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "plain", "a\"b\\c/d", "\x00\x01\b\t\n\v\f\r\x1f\x7f", "é日本🎉", "\u2028 and \u2029", "\xff", "a\xc0\xafb", "cut \xe6\x97", "<&>", "\ufffd",
		"sixteen bytes of text, then a quote: \" and a line\n",
	} {
		got := string(AppendString([]byte("x"), text))
		if want := "x" + string(AppendJSON(nil, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	got := ""
	for name, value := range Members([]byte(` { "a" : 1 , "b\u0063":[{"d":2}],"":"}" } `)) {
		got += string(name) + "=" + string(value) + ";"
	}
	if want := `a=1;bc=[{"d":2}];="}";`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, other := range []string{`{}`, ` { }`, `[1]`, `"{"`, `null`, ``} {
		for name := range Members([]byte(other)) {
			t.Errorf("%s has a member %q", other, name)
		}
	}
}
