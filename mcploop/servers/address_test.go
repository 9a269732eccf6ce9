package servers

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		// The first and the last address of each network, and their neighbours
		"0.0.0.0": false, "0.255.255.255": false, "1.0.0.0": true,
		"9.255.255.255": true, "10.0.0.0": false, "10.255.255.255": false, "11.0.0.0": true,
		"100.63.255.255": true, "100.64.0.0": false, "100.127.255.255": false, "100.128.0.0": true,
		"126.255.255.255": true, "127.0.0.1": false, "127.255.255.255": false, "128.0.0.0": true,
		"169.253.255.255": true, "169.254.169.254": false, "169.255.0.0": true,
		"172.15.255.255": true, "172.16.0.0": false, "172.31.255.255": false, "172.32.0.0": true,
		"191.255.255.255": true, "192.0.0.0": false, "192.0.0.255": false, "192.0.1.0": true, "192.0.2.1": false, "192.0.3.0": true,
		"192.88.98.255": true, "192.88.99.1": false, "192.88.100.0": true,
		"192.167.255.255": true, "192.168.0.0": false, "192.168.255.255": false, "192.169.0.0": true,
		"198.17.255.255": true, "198.18.0.0": false, "198.19.255.255": false, "198.20.0.0": true,
		"198.51.99.255": true, "198.51.100.7": false, "198.51.101.0": true,
		"203.0.112.255": true, "203.0.113.7": false, "203.0.114.0": true,
		"223.255.255.255": true, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.0": false, "255.255.255.255": false,
		"::": false, "::1": false, "::2": false, "::8.8.8.8": false, "::127.0.0.1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true, "::ffff:0:8.8.8.8": true,
		"64:ff9b::8.8.8.8": false, "64:ff9b:1::1": false, "64:ff9b:2::1": true,
		"100::1": false, "2001::1": false, "2001:0:ffff::": false, "2001:1::1": true, "2001:db8::1": false, "2001:db9::": true,
		"2002:7f00:1::": false, "2003::1": true, "2606:4700::1111": true, "3fff::1": false,
		"fc00::1": false, "fdff::1": false, "fe00::1": true, "fe80::1": false, "fe80::1%eth0": false, "febf::1": false, "fec0::1": false,
		"ff02::1": false,
	} {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			if got := isPublic(netip.MustParseAddr(addr)); got != want {
				t.Errorf("isPublic is %v, want %v", got, want)
			}
		})
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestHosts_Allow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		entry, url string
		want       bool
	}{
		{"localhost", "http://localhost:3000/mcp", true},
		{"localhost", "http://LOCALHOST./mcp", true},
		{"localhost", "http://127.0.0.1/mcp", false},
		{"localhost", "http://sub.localhost/mcp", false},
		{"localhost:3000", "http://localhost:3000/mcp", true},
		{"localhost:3000", "http://localhost:3001/mcp", false},
		{"intranet.corp:443", "https://Intranet.Corp/mcp", true},
		{"intranet.corp:443", "http://intranet.corp/mcp", false},
		{"intranet.corp:80", "http://intranet.corp/mcp", true},
		{"127.0.0.1", "http://127.0.0.1:3000/mcp", true},
		{"127.0.0.1", "http://[::ffff:127.0.0.1]/mcp", true},
		{"127.0.0.1", "http://127.0.0.2/mcp", false},
		{"127.0.0.1", "http://localhost/mcp", false},
		{"127.0.0.1:3000", "http://127.0.0.1:3000/mcp", true},
		{"127.0.0.1:3000", "http://127.0.0.1/mcp", false},
		{"10.0.0.0/8", "http://10.200.1.1/mcp", true},
		{"10.1.1.1/8", "http://10.200.1.1/mcp", true},
		{"10.0.0.0/8", "http://11.0.0.1/mcp", false},
		{"10.0.0.0/8:8080", "http://10.1.1.1:8080/mcp", true},
		{"10.0.0.0/8:8080", "http://10.1.1.1/mcp", false},
		{"::1", "http://[::1]:3000/mcp", true},
		{"[::1]", "http://[::1]:3000/mcp", true},
		{"[::1]:3000", "http://[::1]:3000/mcp", true},
		{"[::1]:3000", "http://[::1]:3001/mcp", false},
		{"fd00::/8", "http://[fd12::1]/mcp", true},
		{"[fd00::/8]:80", "http://[fd12::1]/mcp", true},
	} {
		t.Run(test.entry+" "+test.url, func(t *testing.T) {
			t.Parallel()
			h, err := parseHost(test.entry)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(test.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := (hosts{h}).allow(u); got != test.want {
				t.Errorf("allowed is %v, want %v", got, test.want)
			}
		})
	}
}

func TestCheckPrivateHost(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", ":80", "http://localhost", "localhost:", "localhost:http", "localhost:70000", "[::1]:", "[::1]x", "*.corp", "a b", "10.0.0.0/40"} {
		if CheckPrivateHost(wrong) == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
