package servers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// notPublic are the networks that belong to no server on the Internet, as the registries of special addresses list them.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96",        // unspecified, loopback, and IPv4 addresses as they were once embedded
	"64:ff9b::/96", // NAT64, which leads to any IPv4 address
	"64:ff9b:1::/48",
	"100::/64",      // discarded
	"2001::/32",     // Teredo, which leads to any IPv4 address
	"2001:db8::/32", // documentation
	"3fff::/20",
	"2002::/16", // 6to4, likewise
	"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return addr.IsValid() && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// host is an entry of [Settings.PrivateHosts]: a name, or the addresses of a prefix.
type host struct {
	name   string
	prefix netip.Prefix
	port   string // empty: any
}

// CheckPrivateHost says what is wrong with an entry of [Settings.PrivateHosts], if anything.
func CheckPrivateHost(entry string) error {
	_, err := parseHost(entry)
	return err
}

func parseHost(entry string) (host, error) {
	wrong := fmt.Errorf("%q is not a host: it may be a name, an address or a prefix such as 10.0.0.0/8, and end with :port", entry)
	name, port := splitPort(entry)
	if _, err := strconv.ParseUint(cmp.Or(port, "0"), 10, 16); err != nil {
		return host{}, wrong
	}
	if prefix, err := netip.ParsePrefix(name); err == nil {
		return host{prefix: prefix.Masked(), port: port}, nil
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		addr = addr.Unmap().WithZone("")
		return host{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port}, nil
	}
	if name = plainName(name); name == "" || strings.ContainsAny(name, "/:*?@[]%, \t") {
		return host{}, wrong
	}
	return host{name: name, port: port}, nil
}

func splitPort(entry string) (name, port string) {
	if rest, ok := strings.CutPrefix(entry, "["); ok {
		name, port, _ = strings.Cut(rest, "]")
		if port == "" {
			return name, ""
		}
		// Anything but a colon and a number isn't a port, and is refused as one.
		if port = strings.TrimPrefix(port, ":"); port == "" {
			port = "?"
		}
		return name, port
	}
	if strings.Count(entry, ":") == 1 {
		name, port, _ = strings.Cut(entry, ":")
		if port == "" {
			port = "?"
		}
		return name, port
	}
	return entry, "" // without a port, or an IPv6 address
}

func plainName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

type hosts []host

// allow reports whether a URL's host is listed. An address that is listed doesn't allow the names that resolve to it.
func (h hosts) allow(u *url.URL) bool {
	name, port := plainName(u.Hostname()), portOf(u)
	addr, err := netip.ParseAddr(name)
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(h, func(h host) bool {
		if h.port != "" && h.port != port {
			return false
		}
		if err == nil {
			return h.name == "" && h.prefix.Contains(addr)
		}
		return h.name != "" && h.name == name
	})
}

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

func originOf(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + portOf(u)
}

// reserved are the headers that frame a request or belong to the protocol. Nobody but the transport may set them.
var reserved = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
	"Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeaders refuses headers that can't be sent. The error names the header, never its value.
func checkHeaders(headers map[string]string) error {
	for name, value := range headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("the header name %q is not valid", clip(name))
		case slices.Contains(reserved, http.CanonicalHeaderKey(name)), strings.HasPrefix(http.CanonicalHeaderKey(name), "Proxy-"):
			return fmt.Errorf("the header %q can't be set: it belongs to the connection", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("the value of the header %q is not valid", name)
		}
	}
	return nil
}

// configHeaders returns the headers of an entry of mcp.json. Accept and Content-Type, which examples on the web have, are left out.
func configHeaders(headers map[string]string) (map[string]string, error) {
	kept := make(map[string]string, len(headers))
	for name, value := range headers {
		if key := http.CanonicalHeaderKey(name); key != "Accept" && key != "Content-Type" {
			kept[name] = value
		}
	}
	return kept, checkHeaders(kept)
}

// clip shortens a text for a message and leaves out what isn't printable.
func clip(text string) string {
	const most = 128
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
