package secret

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A secret comes back in no answer, wherever that is cut into pieces, and nothing else is changed.
func TestMask(t *testing.T) {
	t.Parallel()
	const key = `sec<ret"key`
	for text, want := range map[string]string{
		"":                                  "",
		"sec":                               "sec",
		key:                                 strings.Repeat("*", len(key)),
		"a " + key + key + " sec<ret":       "a " + strings.Repeat("*", 2*len(key)) + " sec<ret",
		"secsec<ret\"key":                   "sec" + strings.Repeat("*", len(key)),
		`{"a":"sec<ret\"key"}`:              `{"a":"` + strings.Repeat("*", len(key)+1) + `"}`,
		"{\"a\":\"sec\\u003cret\\\"key\"}":  `{"a":"` + strings.Repeat("*", len(key)+6) + `"}`,
		strings.Repeat("sec<ret\"ke", 9000): strings.Repeat("sec<ret\"ke", 9000),
	} {
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "by byte": iotest.OneByteReader, "by half": iotest.HalfReader, "with its end": iotest.DataErrReader,
		} {
			body := Mask(io.NopCloser(cut(strings.NewReader(text))), "", "short", "another secret", key)
			if err := iotest.TestReader(body, []byte(want)); err != nil {
				t.Errorf("%.60q %s: %v", text, name, err)
			}
		}
	}
}
