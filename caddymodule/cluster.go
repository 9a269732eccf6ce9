package caddymodule

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

// Cluster makes this server one of several, the nodes, that share a PostgreSQL store: each answers requests for the models of all of
// them.
type Cluster struct {
	// Where the other nodes reach this one, such as https://10.0.0.2:8443: the address of a site with lm_api. It may be a placeholder, such
	// as {env.NODE_URL}. The host and port are the node's name.
	URL string `json:"url"`

	// A file with certificates of authorities that are trusted beside the system's when other nodes are asked.
	TLSCA string `json:"tls_ca,omitempty"`

	// Whether any certificate of another node is accepted: whoever is on the way can read the keys of nodes and the prompts. Default:
	// false.
	TLSInsecure bool `json:"tls_insecure,omitempty"`
}

// cluster reads the option cluster.
func (a *App) cluster(d *caddyfile.Dispenser) error {
	c := new(Cluster)
	if a.Cluster != nil {
		return d.Errf("cluster: a server is in one cluster: the address %s is given already", withoutPassword(a.Cluster.URL))
	}
	if err := oneArg(d, &c.URL); err != nil {
		return err
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch d.Val() {
		case "tls_ca":
			err = oneArg(d, &c.TLSCA)
		case "tls_insecure":
			err = loneWord(d, &c.TLSInsecure)
		default:
			err = unknownOption(d, "cluster", clusterOptions)
		}
		if err != nil {
			return err
		}
	}
	a.Cluster = c
	return nil
}

// clustered puts the cluster into the settings.
func (a *App) clustered(replace *caddy.Replacer) error {
	c := a.Cluster
	if c == nil {
		return nil
	}
	address, err := replace.ReplaceOrErr(c.URL, true, true)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	s := node.ClusterSettings{URL: strings.TrimRight(address, "/"), TLS: remote.Config{Insecure: c.TLSInsecure}}
	if c.TLSCA != "" {
		s.TLS.CA = home.Absolute(replace.ReplaceAll(c.TLSCA, ""))
	}
	if s.URL == "" {
		return fmt.Errorf("cluster: the address is missing: give the one where other nodes reach this server, such as https://10.0.0.2:8443")
	}
	if isInClear(s.URL) {
		a.log.Warn("the nodes of the cluster reach this one without TLS, so others on the network can read prompts and the nodes' keys: use https, or a tunnel such as WireGuard",
			"node", s.Name())
	}
	if c.TLSInsecure {
		a.log.Warn("any certificate of another node is accepted: give tls_ca instead of tls_insecure", "node", s.Name())
	}
	a.settings.Cluster = s
	return nil
}

// isInClear reports whether others on the network can read what is sent to an address.
func isInClear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// noCluster is shown if there is none.
const noCluster = "none"

// address returns the address as it is shown; empty: there is no cluster.
func (c *Cluster) address() string {
	if c == nil {
		return ""
	}
	return withoutPassword(c.URL)
}

func (c *Cluster) authority() string {
	if c == nil {
		return ""
	}
	return c.TLSCA
}

func (c *Cluster) insecure() string {
	if c == nil {
		return ""
	}
	return yes(c.TLSInsecure)
}
