package supervisor

import (
	"net/netip"
	"strings"
	"testing"
)

func TestWorkerAddress(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"10.0.0.3:50052": "10.0.0.3:50052", "Box.LAN.:1": "box.lan:1", "gpu_1:65535": "gpu_1:65535", "localhost:050": "127.0.0.1:50",
		"[::ffff:10.0.0.3]:5": "10.0.0.3:5", "3com.example:5": "3com.example:5",
	} {
		if got, err := WorkerAddress(given); err != nil || got != want {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for given, want := range map[string]string{
		"":              "such as 10.0.0.3:50052",
		"10.0.0.3":      "such as 10.0.0.3:50052",
		"box":           "such as 10.0.0.3:50052",
		"::1":           "IPv4 only",
		"[::1]":         "IPv4 only",
		"[::1]:50052":   "IPv4 only",
		"fe80::1:50052": "IPv4 only",
		"box:":          "the port",
		"box:0":         "the port",
		"box:65536":     "the port",
		"box:-1":        "the port",
		"box:http":      "the port",
		":50052":        "neither a host's name",
		"a,b:50052":     "neither a host's name",
		"a b:50052":     "neither a host's name",
		"a\nb:50052":    "neither a host's name",
		"http://a:5":    "such as",
		"-x:5":          "neither a host's name",
		"10.0.0.300:5":  "neither a host's name",
		"10.0.0:5":      "neither a host's name",
		"0.0.0.0:5":     "nothing can be reached",
		"224.0.0.1:5":   "nothing can be reached",
	} {
		if got, err := WorkerAddress(given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

func TestIsPrivateAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "192.168.0.7": true, "172.31.0.1": true, "100.100.1.1": true, "169.254.1.1": true, "::ffff:10.0.0.1": true,
		"0.0.0.0": false, "8.8.8.8": false, "172.32.0.1": false, "100.128.0.1": false,
	} {
		if got := IsPrivateAddress(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
