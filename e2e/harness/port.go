package harness

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// listening is the state of a listening TCP socket in /proc/net/tcp.
const listening = "0A"

// given are the ports that FreePort has returned.
var (
	givenMu sync.Mutex
	given   = map[int]bool{}
)

// FreePort returns a port that nobody listens on, below those that the system assigns to outgoing connections and to the engines. It is
// returned only once: a server may listen on it late, or not for a while, and two servers could listen on one port unnoticed.
func FreePort(t testing.TB) int {
	t.Helper()
	givenMu.Lock()
	defer givenMu.Unlock()
	for range 1000 {
		port := 20000 + rand.IntN(10000) //nolint:gosec // no secret
		if given[port] {
			continue
		}
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		given[port] = true
		return port
	}
	t.Fatal("there is no free port")
	return 0
}

// OpenPorts returns the ports on which a process accepts TCP connections or UDP packets, in order.
func OpenPorts(t testing.TB, pid int) (ports []int) {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	var sockets []string // by their inodes
	for _, fd := range fds {
		target, _ := os.Readlink(filepath.Join(proc, "fd", fd.Name())) // it may be closed by now
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets = append(sockets, strings.TrimSuffix(inode, "]"))
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		content, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			continue // without IPv6
		}
		for _, line := range strings.Split(string(content), "\n")[1:] {
			fields := strings.Fields(line)
			if len(fields) < 10 || !slices.Contains(sockets, fields[9]) || strings.HasPrefix(table, "tcp") && fields[3] != listening {
				continue
			}
			_, hex, _ := strings.Cut(fields[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			if err != nil {
				t.Fatalf("/proc/net/%s: %s", table, line)
			}
			ports = append(ports, int(port))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
