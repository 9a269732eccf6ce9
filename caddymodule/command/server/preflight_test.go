package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	long := strings.Repeat("x", 120)
	for name, tt := range map[string]struct {
		home, admin, listen string
		want                string // part of the error; empty: none
	}{
		"all well":              {t.TempDir(), "off", "127.0.0.1:0", ""},
		"home in use":           {string(taken), "off", "127.0.0.1:0", "in use by another lmcaddy"},
		"port in use":           {t.TempDir(), "off", l.Addr().String(), l.Addr().String() + " is already in use"},
		"not a TCP listener":    {t.TempDir(), "off", "udp/" + l.Addr().String(), ""},
		"the socket's path":     {t.TempDir(), "unix//" + long + "|0600", "127.0.0.1:0", "too long for a socket"},
		"a short socket's path": {t.TempDir(), "unix//run/admin.sock|0600", "127.0.0.1:0", ""},
		"nonsense is for Caddy": {t.TempDir(), "off", "127.0.0.1:nonsense", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := fmt.Sprintf(`{"admin":{"listen":%q},"apps":{"lm":{"home":%q},"http":{"servers":{"a":{"listen":[%q]}}}}}`, tt.admin, tt.home, tt.listen)
			err := Preflight([]byte(config))
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestExplainListen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string // empty: no error
	}{
		{nil, ""},
		{&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)}, ""},
		{&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}, "127.0.0.1:80 is already in use"},
		{&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)}, "may not listen on 127.0.0.1:80: choose a port above 1023"},
	} {
		err := explainListen("127.0.0.1:80", tt.err)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want one with %q", tt.err, err, tt.want)
		}
	}
}

func TestSaysNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	check := func(want map[string]bool) {
		t.Helper()
		for line, want := range want {
			if got := SaysNothing(strings.Fields(line)); got != want {
				t.Errorf("lmcaddy run or reload %s: %v", line, got)
			}
		}
	}
	check(map[string]bool{
		"": true, "--watch": true, "--force --address localhost:1": true, "--pingback 127.0.0.1:9 --pidfile p": true, "--envfile a --adapter caddyfile": true,
		"--config a": false, "-c a": false, "--config -": false, "--resume": false, "-r": false,
	})
	if err := os.WriteFile("Caddyfile", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(map[string]bool{"": false, "--watch": false})
}
