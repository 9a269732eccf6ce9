package supervisor

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// WorkerPort is the usual port of a worker.
const WorkerPort = 50052

// hostName matches the names that a worker's machine may have. The engine gets all addresses in one argument, separated by commas.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// WorkerAddress checks the address of a worker, a process that computes for an engine on another machine. It returns the address in the
// form in which two are compared. llama.cpp reaches workers over IPv4 only.
func WorkerAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Count(s, ":") > 1 && !strings.Contains(s, "/") {
			return "", noIPv6(s)
		}
		return "", fmt.Errorf("%q is not the address of a worker: give its host and port, such as 10.0.0.3:%d", s, WorkerPort)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", fmt.Errorf("%q: the port must be a number from 1 to 65535, such as %d", s, WorkerPort)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip, err := netip.ParseAddr(host)
	ip = ip.Unmap()
	switch {
	case err == nil && ip.Is6():
		return "", noIPv6(s)
	case err == nil && (ip.IsUnspecified() || ip.IsMulticast()):
		return "", fmt.Errorf("%q: nothing can be reached at %s: give the address of the worker's machine", s, ip)
	case err == nil:
		host = ip.String()
	case host == "localhost":
		host = "127.0.0.1"
	case !hostName.MatchString(host) || !strings.ContainsAny(host[strings.LastIndexByte(host, '.')+1:], "abcdefghijklmnopqrstuvwxyz_-"): // 10.0.0 and 10.0.0.300 are mistyped addresses
		return "", fmt.Errorf("%q: %q is neither a host's name nor an IPv4 address", s, host)
	}
	return net.JoinHostPort(host, strconv.FormatUint(number, 10)), nil
}

func noIPv6(s string) error {
	return fmt.Errorf("%q: llama.cpp reaches workers over IPv4 only: give an IPv4 address, or a name that has one", s)
}

// IsPrivateAddress reports whether an address is this machine's own, or of a network that the internet doesn't reach.
func IsPrivateAddress(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || sharedAddresses.Contains(ip)
}

// sharedAddresses are those of providers and of overlay networks (RFC 6598).
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")
