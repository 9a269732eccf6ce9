// Package machine tells the names and addresses of the machine that the program runs on.
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

// Hostname is the machine's own name, in lower case. It is empty where the system doesn't tell it.
var Hostname = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return Normal(name)
})

// Names are those by which others on its network may know the machine: its own name, in full and without a domain, and
// that with .local (mDNS) and with each domain that the machine itself searches names in.
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

// maxDomains bounds what a resolver's configuration adds.
const maxDomains = 8

// searched are the domains that a resolv.conf searches names in.
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

// Normal is the form in which host names are compared: in lower case, without the dot that may end them.
func Normal(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// IsLocalhost tells whether a host, a name in its normal form or an address without brackets, means the machine whoever
// looks it up.
func IsLocalhost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// addressAge is for how long the addresses of the interfaces are believed: a laptop changes networks.
const addressAge = 2 * time.Second

var interfaces struct {
	sync.Mutex
	addresses []netip.Addr
	read      time.Time
}

// HasAddress tells whether an address belongs to one of the machine's interfaces.
func HasAddress(ip netip.Addr) bool {
	interfaces.Lock()
	defer interfaces.Unlock()
	if now := time.Now(); interfaces.read.IsZero() || now.Sub(interfaces.read) > addressAge {
		interfaces.addresses, interfaces.read = readAddresses(), now
	}
	return slices.Contains(interfaces.addresses, ip.Unmap().WithZone(""))
}

func readAddresses() (all []netip.Addr) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	return all
}
