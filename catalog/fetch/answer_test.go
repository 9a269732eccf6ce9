package fetch

import (
	"net"
	"net/url"
	"testing"
)

// The error of a failed lookup has the address of the name server, and that of a request its whole URL.
func TestNoAnswer_OfAnUnknownHost(t *testing.T) {
	t.Parallel()
	h, err := newHub(Hub{URL: "https://hub.example"})
	if err != nil {
		t.Fatal(err)
	}
	lookup := &net.DNSError{Err: "no such host", Name: "hub.example", Server: "192.0.2.53:53", IsNotFound: true}
	f := noAnswer(t.Context(), h, &url.Error{Op: "Get", URL: "https://hub.example/?signature=s", Err: &net.OpError{Op: "dial", Net: "tcp", Err: lookup}})
	const want = "No address was found for hub.example: no such host. Check the network and the hub's URL."
	if f.Error() != want || !f.again {
		t.Errorf("again %v: %q, want %q", f.again, f, want)
	}
}
