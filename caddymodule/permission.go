package caddymodule

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/internal/machine"
)

func init() { caddy.RegisterModule(new(Permission)) }

// Permission restricts TLS on demand to certificates for this machine: for its names, the addresses of its interfaces,
// localhost, and the names in the configuration. A client that asks for any other name gets no certificate.
type Permission struct {
	// Additional names and addresses, such as those from which a router forwards to this machine. Default: none.
	Names []config.Host `json:"names,omitempty" args:"<name or address...>"`

	hosts []config.Host // the app's
	sites func() []string
}

// CaddyModule returns the Caddy module information.
func (*Permission) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.permission.lm", New: func() caddy.Module { return new(Permission) }}
}

// Provision finds the app. The sites are looked up later: they are provisioned after TLS.
func (p *Permission) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	p.hosts = app.Hosts
	p.sites = func() (names []string) { // which may include wildcards
		for _, server := range serversOf(ctx) {
			for _, policy := range server.TLSConnPolicies {
				names = append(names, machine.Normal(policy.DefaultSNI))
			}
			for _, route := range server.Routes {
				for _, hosts := range hostMatchers(route) {
					names = append(names, hosts...)
				}
			}
		}
		return names
	}
	return nil
}

// CertificateAllowed returns nil for a name, or an address, that this machine serves.
func (p *Permission) CertificateAllowed(ctx context.Context, name string) error {
	hello, _ := ctx.Value(certmagic.ClientHelloInfoCtxKey).(*tls.ClientHelloInfo)
	if p.allows(name, hello) {
		return nil
	}
	return fmt.Errorf("%w: %q is not a name or address of this machine, and is neither in hosts nor in the permission's names",
		caddytls.ErrPermissionDenied, name)
}

// allows reports whether a certificate may be issued for a name. Other machines can request only a short list of names:
// each address has one spelling, and the many names and addresses of localhost are for connections from this machine.
func (p *Permission) allows(name string, hello *tls.ClientHelloInfo) bool {
	if slices.Contains(p.hosts, config.Host(name)) || slices.Contains(p.Names, config.Host(name)) {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.String() == name && !ip.Is4In6() && (machine.HasAddress(ip) || ip.IsLoopback() && localAddress(hello) == ip)
	}
	return name == "localhost" || slices.Contains(machine.Names(), name) || slices.Contains(p.sites(), name) ||
		machine.IsLocalhost(name) && localAddress(hello).IsLoopback()
}

func localAddress(hello *tls.ClientHelloInfo) netip.Addr {
	if hello == nil || hello.Conn == nil {
		return netip.Addr{}
	}
	at, _ := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
	return at.Addr().Unmap()
}

// UnmarshalCaddyfile reads the block of on_demand_tls.
func (p *Permission) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // lm
	return option.Parse(d, "permission lm", p)
}

// warnOnDemand warns about TLS on demand for arbitrary names: each certificate takes three files, so clients could fill the disk.
func warnOnDemand(ctx caddy.Context, log *slog.Logger) {
	app, err := ctx.AppIfConfigured("tls")
	if err != nil {
		return
	}
	automation := app.(*caddytls.TLS).Automation
	if automation == nil || automation.OnDemand != nil {
		return
	}
	for _, policy := range automation.Policies {
		subjects := policy.Subjects()
		if policy.OnDemand && (len(subjects) == 0 || slices.ContainsFunc(subjects,
			func(s string) bool { return strings.Contains(s, "*") })) {
			log.Warn("anyone who can reach a site with on_demand can request any number of certificates: " +
				"put on_demand_tls { permission lm } into the global options")
			return
		}
	}
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Permission)(nil)
	_ caddyfile.Unmarshaler       = (*Permission)(nil)
	_ caddytls.OnDemandPermission = (*Permission)(nil)
)
