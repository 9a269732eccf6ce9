package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// engineName is the name under which the test's binary acts as an engine that was taken over.
const engineName = "llama-server"

// intrusion is what such an engine tries before it becomes the real one.
type intrusion struct {
	Real    string   // the executable
	NoHost  bool     // a build that can't listen on a socket
	Read    []string // files and folders
	Write   []string // files to create
	Execute []string // programs that exit at once
	Dial    []string // networks and addresses, such as "tcp 127.0.0.1:1234"
	Listen  []string // likewise
	Call    string   // a file of the user on which to try system calls
}

// The file next to the engine, which says what to try, and the one in its launch folder, which has the results.
const (
	intrusionFile = "intrusion.json"
	resultFile    = "result.json"
)

// intrude runs such an engine. It returns if it can't begin, or has printed its help.
func intrude() error {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), intrusionFile))
	if err != nil {
		return err
	}
	var in intrusion
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	_ = os.Unsetenv("PATH") // otherwise the real one's start script finds nothing
	args := append([]string{in.Real}, os.Args[1:]...)
	if slices.Contains(args, "--help") && in.NoHost {
		help, err := exec.Command(in.Real, "--help").Output()
		fmt.Print(strings.ReplaceAll(string(help), ".sock", ".nothing"))
		return err
	}
	if slices.Contains(args, "-m") {
		result, err := json.Marshal(in.try())
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), resultFile), result, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return syscall.Exec(in.Real, args, os.Environ())
}

// try returns what was allowed, and why the rest was refused.
func (in *intrusion) try() map[string]string {
	result := map[string]string{}
	tell := func(what, to string, err error) {
		said := "allowed"
		if err != nil {
			said = err.Error()
		}
		result[what+" "+to] = said
	}
	for _, path := range in.Read {
		file, err := os.Open(path)
		if err == nil {
			_ = file.Close()
		}
		tell("read", path, err)
	}
	for _, path := range in.Write {
		tell("write", path, os.WriteFile(path, []byte("x"), 0o600))
	}
	for _, path := range in.Execute {
		tell("execute", path, exec.Command(path).Run())
	}
	for _, to := range in.Dial {
		network, address, _ := strings.Cut(to, " ")
		conn, err := net.Dial(network, address)
		if err == nil {
			_ = conn.Close()
		}
		tell("dial", to, err)
	}
	for _, to := range in.Listen {
		network, address, _ := strings.Cut(to, " ")
		listener, err := net.Listen(network, address)
		if err == nil {
			_ = listener.Close()
		}
		tell("listen", to, err)
	}
	parent := os.Getppid()
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", parent))
	tell("read", "the server's environment", err)
	tell("signal", "the server", syscall.Kill(parent, 0))
	if in.Call != "" {
		for what, try := range in.calls(parent) {
			tell("call", what, try())
		}
	}
	return result
}
