package machine

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hostname string
		domains  []string
		want     []string
	}{
		"no name":           {"", []string{"lan"}, nil},
		"a single label":    {"box", nil, []string{"box", "box.local"}},
		"a search domain":   {"box", []string{"lan", "example.org"}, []string{"box", "box.example.org", "box.lan", "box.local"}},
		"a name in full":    {"box.example.org", []string{"example.org"}, []string{"box", "box.example.org", "box.local"}},
		"a name with local": {"box.local", nil, []string{"box", "box.local"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, names(tt.hostname, tt.domains)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSearched(t *testing.T) {
	t.Parallel()
	got := searched(strings.NewReader("# search no\nnameserver 9.9.9.9\nsearch Fritz.Box. .lan\n  domain example.org\nsearch\nsearch " + strings.Repeat("x ", 20)))
	if want := []string{"fritz.box", "lan", "example.org", "x", "x", "x", "x", "x"}; !cmp.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestIsLocalhost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "app.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example": false, "notlocalhost": false, "10.0.0.1": false, "127.0.0.1.nip.io": false,
	} {
		if IsLocalhost(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func TestHasAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "192.0.2.1": false, "0.0.0.0": false} {
		if HasAddress(netip.MustParseAddr(address)) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
}
