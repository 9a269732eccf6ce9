package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// site is lmcaddy with the fake engine loaded, and the other proxies, each with such an engine of its own.
type site struct {
	server  *harness.Server
	targets []target
	missing []string // what is not among the targets, with the reason
}

// startSite starts everything. It ends with the test.
func startSite(t testing.TB) site {
	server := startOurs(t, "")
	s := site{server: server}
	own := server.Base[len("http://"):]
	bare := startFloor(t, startEngine(t))
	plain := startCaddy(t, startEngine(t))
	var others []target
	others, s.missing = startPeers(t)
	admin := server.RunFile("admin.sock")
	s.targets = slices.Concat([]target{{name: direct, what: "no proxy", address: startEngine(t)}, bare, plain}, others, []target{
		{name: ours, what: "lm_api; the engine is asked for a stream, even if the client asks for one body (whole answer)", address: own, pid: server.PID, admin: admin},
		{name: oneBody, what: "lm_api; the client asks for one body where the others' clients ask for a stream", address: own, pid: server.PID, admin: admin, gathers: true},
	})
	if *before != "" {
		old := startOurs(t, *before)
		own := old.Base[len("http://"):]
		s.targets = append(s.targets, target{name: olderName(ours), what: "lm_api of -before", address: own, pid: old.PID},
			target{name: olderName(oneBody), what: "the same, as one body", address: own, pid: old.PID, gathers: true})
	}
	return s
}

// startOurs starts an lmcaddy with the fake engine loaded. binary is empty for the one under test.
func startOurs(t testing.TB, binary string) *harness.Server {
	home := harness.NewHome(t)
	home.Binary = binary
	server := harness.Start(home, harness.Config{Engine: []string{
		"path " + linkSelf(t, home),
		"parallel 8",              // as many as clients, so that the queue isn't measured
		"args --ctx-size 1048576", // otherwise the large body is refused as a prompt that can't fit
	}})
	server.Chat(harness.Ask("Hello").With("max_tokens", small.events)) // loads the model
	return server
}

func (s site) target(name string) target {
	return s.targets[slices.IndexFunc(s.targets, func(t target) bool { return t.name == name })]
}

// linkSelf gives the test's binary the engine's name.
func linkSelf(t testing.TB, home *harness.Home) (path string) {
	self, err := os.Executable()
	path = filepath.Join(home.Work, engineName)
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// startSelf starts the test's binary under another name, which serves at an address until the test ends.
func startSelf(t testing.TB, address string, args ...string) (pid int) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: args, Env: []string{}, Stderr: os.Stderr}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	})
	harness.Eventually(t, harness.Patience, args[0]+" answers", func() bool {
		c, err := dial(address)
		if err == nil {
			c.close()
		}
		return err == nil
	})
	return cmd.Process.Pid
}

// startEngine starts an engine for one target: one that several share is slower for each, so that they couldn't be compared with lmcaddy,
// which always has its own.
func startEngine(t testing.TB) (address string) {
	port := harness.FreePort(t)
	address = harness.Address(port)
	startSelf(t, address, engineName, "--port", strconv.Itoa(port))
	return address
}

func startFloor(t testing.TB, upstream string) target {
	address := harness.Address(harness.FreePort(t))
	return target{name: floor, what: "net/http/httputil.ReverseProxy and nothing else", address: address, pid: startSelf(t, address, floorName, address, upstream)}
}

func startCaddy(t testing.TB, upstream string) target {
	home := harness.NewBareHome(t)
	home.Env = append(home.Env, "GOGC=100") // as any other program of Go's; ours sets more
	port := harness.FreePort(t)
	file := home.WriteFile("Caddyfile", fmt.Sprintf(`{
	grace_period 15s
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
}

http://:%d {
	bind 127.0.0.1
	reverse_proxy %s
}
`, port, upstream))
	server := home.Launch(port, "run", "--config", file)
	return target{name: caddy, what: "the same binary, its Caddyfile with a plain reverse_proxy alone", address: harness.Address(port), pid: server.PID, admin: server.RunFile("admin.sock")}
}

// printf writes a progress line.
func printf(w io.Writer, format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
