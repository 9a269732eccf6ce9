// Package machine returns the names and addresses of this machine.
package machine

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Hostname returns the machine's host name in lower case, or "" if it is unknown.
var Hostname = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return Normal(name)
})

// Names returns the names by which other machines may know this one: its host name, with and without domain, and with .local
// (mDNS) and each domain in the resolver's search list.
var Names = sync.OnceValue(func() []string {
	var domains []string
	if file, err := os.Open("/etc/resolv.conf"); err == nil {
		domains = searched(file)
		_ = file.Close()
	}
	return names(Hostname(), domains)
})

func names(hostname string, domains []string) []string {
	if hostname == "" {
		return nil
	}
	short, _, _ := strings.Cut(hostname, ".")
	all := []string{hostname, short, short + ".local"}
	for _, domain := range domains {
		all = append(all, short+"."+domain)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxDomains bounds the domains taken from the resolver's configuration.
const maxDomains = 8

// searched returns the search list of a resolv.conf.
func searched(file io.Reader) (domains []string) {
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "search" && words[0] != "domain" {
			continue
		}
		for _, word := range words[1:] {
			if domain := Normal(strings.TrimPrefix(word, ".")); domain != "" && len(domains) < maxDomains {
				domains = append(domains, domain)
			}
		}
	}
	return domains
}

// Normal returns the form in which host names are compared: in lower case, without a trailing dot.
func Normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// IsLocalhost reports whether a host always means the local machine. The host is a name in its normal form, or an address without brackets.
func IsLocalhost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// addressAge is how long the addresses are cached. Laptops change networks.
const addressAge = 2 * time.Second

var interfaces struct {
	sync.Mutex
	addresses []netip.Addr
	read      time.Time
}

// HasAddress reports whether an address belongs to an interface of this machine.
func HasAddress(ip netip.Addr) bool {
	interfaces.Lock()
	defer interfaces.Unlock()
	if now := time.Now(); interfaces.read.IsZero() || now.Sub(interfaces.read) > addressAge {
		interfaces.addresses, interfaces.read = nil, now
		addresses, _ := net.InterfaceAddrs() // without them, none is this machine's
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				interfaces.addresses = append(interfaces.addresses, prefix.Addr().Unmap())
			}
		}
	}
	return slices.Contains(interfaces.addresses, ip.Unmap().WithZone(""))
}
