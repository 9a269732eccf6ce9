package caddymodule

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/internal/machine"
)

// connected is a connection that came in at an address.
type connected struct {
	net.Conn
	at string
}

func (c connected) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.at), 8443))
}

func TestPermission_OnlyThisMachine(t *testing.T) {
	t.Parallel()
	p := &Permission{
		Names: []config.Host{"named.example", "203.0.113.7"}, hosts: []config.Host{"host.lan"},
		sites: func() []string { return []string{"site.example", "*.wild.example"} },
	}
	const far = "192.0.2.1"
	for _, tt := range []struct {
		name, at string // at: where the connection came in
		want     bool
	}{
		{"localhost", far, true},
		{machine.Hostname(), far, true},
		{machine.Names()[0], far, true},
		{"127.0.0.1", far, true},
		{"named.example", far, true},
		{"203.0.113.7", far, true},
		{"host.lan", far, true},
		{"site.example", far, true},
		{"x.localhost", "127.0.0.1", true},
		{"x.localhost", "::ffff:127.0.0.1", true},
		{"127.0.0.2", "127.0.0.2", true},
		{"", far, false},
		{"x.localhost", far, false},
		{"127.0.0.2", far, false},
		{"127.0.0.2", "127.0.0.1", false},
		{"192.0.2.1", far, false}, // no interface has it
		{"other.example", far, false},
		{"x.named.example", far, false},
		{"x.wild.example", far, false},
		{"x." + machine.Hostname() + ".example", far, false},
		{"::ffff:127.0.0.1", far, false},
		{"0:0:0:0:0:0:0:1", "::1", false},
	} {
		ctx := context.WithValue(t.Context(), certmagic.ClientHelloInfoCtxKey, &tls.ClientHelloInfo{Conn: connected{at: tt.at}})
		err := p.CertificateAllowed(ctx, tt.name)
		if (err == nil) != tt.want || err != nil && !errors.Is(err, caddytls.ErrPermissionDenied) {
			t.Errorf("%q at %s: %v", tt.name, tt.at, err)
		}
	}
}

func TestWarnOnDemand(t *testing.T) {
	for name, tt := range map[string]struct {
		caddyfile string
		want      bool
	}{
		"any name":        {":8443 {\n tls internal {\n on_demand\n }\n lm_api\n}", true},
		"permission lm":   {"{\n on_demand_tls {\n permission lm\n }\n}\n:8443 {\n tls internal {\n on_demand\n }\n lm_api\n}", false},
		"one name":        {"a.example:8443 {\n tls internal {\n on_demand\n }\n lm_api\n}", false},
		"a wildcard":      {"*.a.example:8443 {\n tls internal {\n on_demand\n }\n lm_api\n}", true},
		"not on demand":   {"a.example:8443 {\n tls internal\n lm_api\n}", false},
		"no TLS whatever": {"http://:8080 {\n lm_api\n}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LMCADDY_HOME", t.TempDir())
			var log strings.Builder
			ctx, err := provisioned(t, tt.caddyfile)
			if err != nil {
				t.Fatal(err)
			}
			warnOnDemand(ctx, slog.New(slog.NewTextHandler(&log, nil)))
			if got := strings.Contains(log.String(), "permission lm"); got != tt.want {
				t.Errorf("%v: %s", got, &log)
			}
		})
	}
}
