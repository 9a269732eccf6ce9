package caddymodule

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestPreflight(t *testing.T) {
	t.Parallel()
	taken := home.Dir(filepath.Join(t.TempDir(), "taken"))
	held, err := node.Reserve(taken)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release() }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	free := t.TempDir()
	long := strings.Repeat("x", 120)
	for name, tt := range map[string]struct {
		home, admin, listen string
		want                string // part of the error; empty: none
	}{
		"all well":              {free, "off", "127.0.0.1:0", ""},
		"home in use":           {string(taken), "off", "127.0.0.1:0", "in use by another lmcaddy"},
		"port in use":           {free, "off", l.Addr().String(), l.Addr().String() + " is already in use"},
		"not a TCP listener":    {free, "off", "udp/" + l.Addr().String(), ""},
		"the socket's path":     {free, "unix//" + long + "|0600", "127.0.0.1:0", "too long for a socket"},
		"a short socket's path": {free, "unix//run/admin.sock|0600", "127.0.0.1:0", ""},
		"nonsense is for Caddy": {free, "off", "127.0.0.1:nonsense", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := fmt.Sprintf(`{"admin":{"listen":%q},"apps":{"lm":{"home":%q},"http":{"servers":{"a":{"listen":[%q]}}}}}`, tt.admin, tt.home, tt.listen)
			err := preflight([]byte(config))
			if dir, err := realHome(home.Dir(tt.home)); err == nil && tt.home == free {
				lock, err := reserve(dir) // for the next case
				if err != nil || lock.Release() != nil {
					t.Fatal(err)
				}
			}
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Of two servers that start at once, the one that comes first keeps the other out, before either has begun.
func TestPreflight_KeepsTheHome(t *testing.T) {
	t.Parallel()
	dir, err := realHome(home.Dir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := preflight(fmt.Appendf(nil, `{"admin":{"listen":"off"},"apps":{"lm":{"home":%q}}}`, dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Reserve(dir); err == nil {
		t.Error("another server may begin on the home")
	}
	lock, err := reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Open(slog.New(slog.DiscardHandler)).Close(); err != nil {
		t.Error(err)
	}
	if lock, err = node.Reserve(dir); err != nil || lock.Release() != nil {
		t.Errorf("the home isn't free again: %v", err)
	}
}
