//go:build linux

package e2e

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// An engine that was taken over can reach neither the machine nor the server; a normal one works as usual.
func TestSandbox_AnEngineReachesNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		engine  []string
		onPort  bool
		allowed bool // whether what the sandbox forbids is allowed
		state   string
	}{
		"by default":          {nil, false, false, "landlock, ABI "},
		"listening on a port": {nil, true, false, "landlock, ABI "},
		"switched off":        {[]string{"sandbox off"}, false, true, "off"},
	} {
		t.Run(name, func(t *testing.T) {
			home := harness.NewHome(t)
			other := home.AddModel("lmcaddy/tinydraft", "tinydraft-f16.gguf", harness.ShippedModel(t))
			stranger, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close()
			tool := home.WriteFile("tool", "#!/bin/sh\n")
			if err := os.Chmod(tool, 0o700); err != nil {
				t.Fatal(err)
			}
			model := filepath.Join(home.Dir, "models", "lmcaddy", "tinychat", "tinychat-f16.gguf")
			in := intrusion{
				Real:    realEngine(t, home),
				NoHost:  c.onPort,
				Read:    []string{"/etc/passwd", other, home.Dir, filepath.Join(home.Dir, "run"), "/proc/1/cmdline", model},
				Write:   []string{filepath.Join(home.Work, "x"), filepath.Join(home.Dir, "x"), filepath.Join(os.TempDir(), "lmcaddy-e2e-x")},
				Execute: []string{tool},
				Dial:    []string{"tcp " + stranger.Addr().String(), "unix " + filepath.Join(home.Dir, "run", "lmcaddy.sock"), "udp 127.0.0.1:53"},
				Listen:  []string{"tcp 127.0.0.1:" + strconv.Itoa(harness.FreePort(t))},
				Call:    model,
			}
			t.Cleanup(func() { _ = os.Remove(in.Write[2]) })
			path := installIntruder(t, home, in)
			s := harness.Start(home, harness.Config{Engine: append([]string{"path " + path, "sandbox_read " + filepath.Dir(filepath.Dir(in.Real)) + " /bin/sh /usr/bin/readlink " + filepath.Join(home.Work, intrusionFile)}, c.engine...)})
			if a := s.Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("answer %q", a.Content)
			}
			ps := gjson.Parse(home.Command("ps", "--json").Output).Get("instances.0")
			if got := ps.Get("sandbox").Str; !strings.HasPrefix(got, c.state) {
				t.Errorf("ps says of the sandbox: %q, want %q", got, c.state)
			}
			checkIntruder(t, home, c.allowed, model)
			if status := home.Command("status").Output; !strings.Contains(status, "Engines' sandbox: "+c.state) {
				t.Errorf("status:\n%s", status)
			}
			if !c.allowed {
				wantPrivileges(t, ps.Get("pid").String())
			}
		})
	}
}

// checkIntruder reads the result of the intrusion in the home's only engine.
func checkIntruder(t *testing.T, home *harness.Home, allowed bool, model string) {
	t.Helper()
	results, _ := filepath.Glob(filepath.Join(home.Dir, "run", "engines", "*", resultFile))
	if len(results) != 1 {
		t.Fatalf("results of one launch: %v", results)
	}
	text, err := os.ReadFile(results[0])
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]string
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	if len(result) < 40 {
		t.Errorf("only this was tried: %v", result)
	}
	for what, said := range result {
		if want := allowed || what == "read "+model || strings.HasPrefix(what, "call own "); want != (said == "allowed") {
			t.Errorf("%s: %s", what, said)
		}
	}
}

// wantPrivileges checks what the kernel reports about the real engine, which the intruder has become.
func wantPrivileges(t *testing.T, pid string) {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("the engine's status, where %q is wanted:\n%s", line, status)
		}
	}
}

// The error of an engine that needs more than it is allowed says how to find out.
func TestSandbox_AFailureNamesIt(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	path := installIntruder(t, home, intrusion{Real: realEngine(t, home)}) // which it isn't allowed to start
	s := harness.Start(home, harness.Config{Engine: []string{"path " + path, "sandbox_read " + filepath.Join(home.Work, intrusionFile)}})
	r := s.Post(harness.ChatPath, harness.Ask(capital))
	if r.Status != 503 || !strings.Contains(r.Body, "add `sandbox off` there") {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
}

// installIntruder installs the test's binary under the engine's name, with a file that says what to try.
func installIntruder(t *testing.T, home *harness.Home, in intrusion) (path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(home.Work, engineName)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	home.WriteFile(intrusionFile, string(text))
	return path
}

// realEngine is the executable of a home's selected runtime, or the one on PATH.
func realEngine(t *testing.T, home *harness.Home) string {
	t.Helper()
	for _, r := range gjson.Parse(home.Command("runtime", "ls", "--json").Output).Array() {
		if r.Get("selected").Bool() {
			path, err := filepath.EvalSymlinks(r.Get("path").Str)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatal("no runtime is selected")
	return ""
}
