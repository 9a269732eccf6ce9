package e2e

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// listenOn occupies a port until the test is over.
func listenOn(t *testing.T, address string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestListen_OnAPortThatAnotherProgramHasIsRefused(t *testing.T) {
	t.Parallel()
	port := listenOn(t, "127.0.0.1:0")
	wantPortTaken(t, harness.NewHome(t), port)
}

func TestListen_OnAPortThatAnotherLmcaddyHasIsRefused(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	s := harness.Start(harness.NewHome(t), harness.Config{Port: port})
	wantPortTaken(t, harness.NewHome(t), port)
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("the first answers %q", a.Content)
	}
}

func wantPortTaken(t *testing.T, home *harness.Home, port int) {
	t.Helper()
	address := harness.Address(port)
	for name, args := range map[string][]string{
		"run":   {"run", "--config", home.WriteFile("Caddyfile", harness.Config{Port: port}.String())},
		"serve": {"serve", "--listen", address},
	} {
		r := home.Command(args...)
		if r.Status == 0 || !strings.Contains(r.Output, address) || !strings.Contains(r.Output, "in use") {
			t.Errorf("%s: status %d; %s is to be named as in use: %s", name, r.Status, address, r.Output)
		}
	}
}

func TestListen_BoundToLoopbackIsNotReachableFromElsewhere(t *testing.T) {
	port := harness.FreePort(t)
	s := harness.Start(harness.NewHome(t), harness.Config{Port: port, Bind: "127.0.0.1"})
	for _, host := range otherAddresses(t) {
		control := listenOn(t, net.JoinHostPort(host, "0"))
		if err := dial(host, control); err != nil {
			t.Fatalf("%s can't be reached at all, which proves nothing: %v", host, err)
		}
		if err := dial(host, port); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s, port %d: want a refusal, have %v", host, port, err)
		}
	}
	if err := dial("127.0.0.1", port); err != nil {
		t.Errorf("127.0.0.1: %v", err)
	}
	s.Get("/v1/models").Want(t, 200)
}

func dial(host string, port int) error {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(port)), 5*time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err
}

// otherAddresses returns this machine's addresses except 127.0.0.1 and those that need a zone.
func otherAddresses(t *testing.T) []string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"127.0.0.2"}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.String() != "127.0.0.1" && !ip.IP.IsLinkLocalUnicast() {
			others = append(others, ip.IP.String())
		}
	}
	return others
}
