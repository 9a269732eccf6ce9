package caddymodule

import (
	"errors"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// steer has Linux give new connections to the newer of two sockets of this process that listen on one address. During a reload each
// configuration has a socket of its own (SO_REUSEPORT), and Linux spreads connections over both: those that the older one hasn't accepted
// when it is closed are reset.
func steer() error {
	listening, err := listeners()
	if err != nil {
		return err
	}
	var all []error
	for _, descriptors := range listening {
		if len(descriptors) != 2 {
			continue
		}
		// The sockets of an address are numbered in the order in which they began to listen. Once the older one is closed, number 1 doesn't
		// exist, and the program has no effect until the next reload.
		newer := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1}
		all = append(all, os.NewSyscallError("setsockopt",
			unix.SetsockoptSockFprog(descriptors[0], unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
				&unix.SockFprog{Len: 1, Filter: &newer})))
	}
	return errors.Join(all...)
}

// listeners returns the descriptors of this process's listening TCP sockets, by their addresses. Caddy hands out listeners that hide their
// descriptors.
func listeners() (map[netip.AddrPort][]int, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	found := map[netip.AddrPort][]int{}
	for _, file := range files {
		fd, err := strconv.Atoi(file.Name())
		if err != nil {
			continue
		}
		if is, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || is == 0 {
			continue // another file, or closed meanwhile
		}
		switch address, _ := unix.Getsockname(fd); a := address.(type) {
		case *unix.SockaddrInet4:
			at := netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)) //nolint:gosec // a port
			found[at] = append(found[at], fd)
		case *unix.SockaddrInet6:
			//nolint:gosec // a port
			at := netip.AddrPortFrom(netip.AddrFrom16(a.Addr).WithZone(strconv.Itoa(int(a.ZoneId))), uint16(a.Port))
			found[at] = append(found[at], fd)
		}
	}
	return found, nil
}
