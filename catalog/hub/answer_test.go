package hub

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The error of a failed lookup has the address of the name server, and that of a request its whole URL.
func TestNoAnswer_OfAnUnknownHost(t *testing.T) {
	t.Parallel()
	h, err := newHub(Config{URL: "https://hub.example"})
	if err != nil {
		t.Fatal(err)
	}
	lookup := &net.DNSError{Err: "no such host", Name: "hub.example", Server: "192.0.2.53:53", IsNotFound: true}
	f := NoAnswer(t.Context(), h, &url.Error{Op: "Get", URL: "https://hub.example/?signature=s", Err: &net.OpError{
		Op: "dial", Net: "tcp",
		Err: lookup,
	}})
	const want = "No address was found for hub.example: no such host. Check the network and the hub's URL."
	if f.Error() != want || !f.Retry {
		t.Errorf("again %v: %q, want %q", f.Retry, f, want)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "-5": 0, "soon": 0, "99999999999999": 0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	later := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if got := retryAfter(http.Header{"Retry-After": {later}}); got < 59*time.Minute || got > time.Hour {
		t.Errorf("in an hour: %v", got)
	}
}

func TestNextPage(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`<https://h/api?cursor=a>; rel="next"`: "https://h/api?cursor=a", `</x>; rel="prev", </y>; rel = "next"`: "/y", `</x>; rel="prev"`: "", "": "", "next": "",
	} {
		if got := nextPage(http.Header{"Link": {value}}); got != want {
			t.Errorf("%q: %q", value, got)
		}
	}
}

// TestToken_IsNotQuoted from the words with which a hub refuses it.
func TestToken_IsNotQuoted(t *testing.T) {
	t.Parallel()
	base := &url.URL{Scheme: "https", Host: "hub.example"}
	for word, isPassedOn := range map[string]bool{"The token is expired.": true, "The token hf_secret is expired.": false} {
		response := &http.Response{StatusCode: http.StatusUnauthorized, Request: &http.Request{URL: base}, Header: http.Header{"X-Error-Message": {word}}}
		said := Refused(&Hub{Base: base, token: "hf_secret"}, "the model", "a/b", response).Error()
		if strings.Contains(said, word) != isPassedOn || strings.Contains(said, "hf_secret") {
			t.Errorf("%s", said)
		}
	}
}
