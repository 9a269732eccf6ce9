package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Network is a switch that connects namespaces. It is in a namespace of its own, without a way to any other network.
type Network struct {
	t      testing.TB
	hub    *Namespace
	links  *netlink.Handle // those of the hub
	bridge netlink.Link
	joined int
}

// Namespace is a machine of a [Network], as far as connections are concerned. It has a loopback interface of its own, so each may use the same
// ports. Everything else is shared, such as files and with them Unix sockets.
type Namespace struct {
	Address string

	network *Network
	at      netns.NsHandle
	port    netlink.Link // the end of its cable in the hub
}

// insideVariable is set in the process that [Networked] starts.
const insideVariable = "LMCADDY_TEST_NETWORKED"

// Networked runs a test that makes a [Network]. Users other than root have the right to do so only in a user namespace, and only a new process can
// enter one, so another process runs the test for them.
func Networked(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getuid() == 0 || os.Getenv(insideVariable) != "" {
		test(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a user namespace, which the system has to allow: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// NewNetwork makes a network. It is gone with the test.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	n := &Network{t: t}
	n.hub = n.namespace()
	links, err := netlink.NewHandleAt(n.hub.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(links.Close)
	n.links = links
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "switch"
	n.bridge = &netlink.Bridge{LinkAttrs: attributes}
	if err := links.LinkAdd(n.bridge); err != nil {
		t.Fatalf("making a switch: %v", err)
	}
	n.configure(links, "switch", n.hub.Address)
	return n
}

// Hub is where the switch is. It can't be cut off.
func (n *Network) Hub() *Namespace { return n.hub }

// Join returns a new namespace that is connected with all others.
func (n *Network) Join() *Namespace {
	n.t.Helper()
	ns := n.namespace()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = fmt.Sprintf("port%d", n.joined)
	cable := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.at)}
	err := n.links.LinkAdd(cable)
	if err == nil {
		ns.port, err = n.links.LinkByName(attributes.Name)
	}
	if err == nil {
		err = n.links.LinkSetUp(ns.port)
	}
	if err != nil {
		n.t.Fatalf("laying a cable: %v", err)
	}
	ns.Mend()
	links, err := netlink.NewHandleAt(ns.at)
	if err != nil {
		n.t.Fatal(err)
	}
	defer links.Close()
	n.configure(links, "eth0", ns.Address)
	return ns
}

// namespace makes a namespace.
func (n *Network) namespace() *Namespace {
	n.t.Helper()
	n.joined++
	ns := &Namespace{Address: fmt.Sprintf("10.77.0.%d", n.joined), network: n}
	err := inThread(func() (err error) {
		ns.at, err = netns.New()
		return err
	})
	if err != nil {
		n.t.Fatalf("making a network namespace: %v", err)
	}
	n.t.Cleanup(func() { _ = ns.at.Close() })
	return ns
}

// configure gives an interface an address, and starts it and the loopback.
func (n *Network) configure(links *netlink.Handle, name, address string) {
	n.t.Helper()
	link, err := links.LinkByName(name)
	if err == nil {
		err = links.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(24, 32)}})
	}
	for _, name := range []string{"lo", name} {
		if err == nil {
			link, err = links.LinkByName(name)
		}
		if err == nil {
			err = links.LinkSetUp(link)
		}
	}
	if err != nil {
		n.t.Fatalf("configuring %s: %v", name, err)
	}
}

// Cut cuts the namespace off. Nobody is told: packets disappear in both directions.
func (ns *Namespace) Cut() {
	ns.network.t.Helper()
	if err := ns.network.links.LinkSetNoMaster(ns.port); err != nil {
		ns.network.t.Fatalf("cutting %s off: %v", ns.Address, err)
	}
}

// Mend undoes Cut.
func (ns *Namespace) Mend() {
	ns.network.t.Helper()
	if err := ns.network.links.LinkSetMaster(ns.port, ns.network.bridge); err != nil {
		ns.network.t.Fatalf("connecting %s: %v", ns.Address, err)
	}
}

// do runs a function whose new sockets and processes are in the namespace; nil: in that of the test.
func (ns *Namespace) do(f func() error) error {
	if ns == nil {
		return f()
	}
	return inThread(func() error {
		if err := netns.Set(ns.at); err != nil {
			return err
		}
		return f()
	})
}

// inThread runs a function that may change the namespace of its thread. The thread returns to its own: if it ended instead, the system would
// end processes that are bound to it.
func inThread(f func() error) error {
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = own.Close() }()
	err = f()
	if back := netns.Set(own); back != nil {
		return back // the thread stays locked, and ends with the goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// dialer returns how connections are made from the namespace.
func (ns *Namespace) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if ns == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = ns.do(func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}
