package remote

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// The key that a remote was sent comes back in no answer, wherever that is cut into pieces, and nothing else is changed.
func TestSecret_ComesBackInNoAnswer(t *testing.T) {
	t.Parallel()
	const key = `sec<ret"key`
	s := &Server{config: Config{Key: key}}
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
			body := s.withoutSecrets(io.NopCloser(cut(strings.NewReader(text))))
			if err := iotest.TestReader(body, []byte(want)); err != nil {
				t.Errorf("%.60q %s: %v", text, name, err)
			}
		}
	}
}

// What may be the key isn't held back for longer than until the next byte.
func TestSecret_AStreamGoesOn(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		goOn := make(chan struct{})
		far := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: secret\n\n")
			_ = http.NewResponseController(w).Flush()
			<-goOn
			_, _ = io.WriteString(w, "data: secretkey\n\n")
		}))
		if far.EnableHTTP2 = http2; http2 {
			far.StartTLS()
		} else {
			far.Start()
		}
		t.Cleanup(far.Close)
		s := serverOf(t, Config{Name: "r", URL: far.URL, Key: "secretkey", Insecure: http2})
		resp, err := s.Post(t.Context(), "/", supervisor.Payload{})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		first := make([]byte, 14)
		if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "data: secret\n\n" {
			t.Errorf("%q, %v", first, err)
		}
		close(goOn)
		if rest, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(rest, []byte("data: *********\n\n")) {
			t.Errorf("%q, %v", rest, err)
		}
	}
}
