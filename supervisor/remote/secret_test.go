package remote

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

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
		c := Config{Name: "r", URL: far.URL, Key: "secretkey"}
		if http2 {
			c.Pin = fmt.Sprintf("%x", sha256.Sum256(far.Certificate().Raw))
		}
		s := serverOf(t, c)
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
