package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// analyze is the path of systemd-analyze.
var analyze = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../../tools/systemd.sh").Output()
	return strings.TrimSpace(string(out)), err
})

// unitFile writes the unit of a service whose program exists.
func unitFile(t *testing.T, scope Scope, program string) string {
	t.Helper()
	h := Host{OS: "linux", UserHome: "/home/ann"}
	s := h.Defaults(scope, program, "/home/ann/.lmcaddy")
	path := filepath.Join(t.TempDir(), unitName)
	if err := os.WriteFile(path, []byte(s.unit(h.UserHome)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnit_Verify(t *testing.T) {
	t.Parallel()
	program, err := analyze()
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{User, System} {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(program, "verify", "--"+string(scope), "--man=no", unitFile(t, scope, "/bin/true"))
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), unitName) {
				t.Errorf("error %v:\n%s", err, out)
			}
		})
	}
}

// TestUnit_Security holds the exposure to what was reached: "OK" for the system's unit, "MEDIUM" for a user's, whose manager
// can't give it less than the user has.
func TestUnit_Security(t *testing.T) {
	t.Parallel()
	program, err := analyze()
	if err != nil {
		t.Fatal(err)
	}
	for scope, most := range map[Scope]float64{System: 2.3, User: 7.2} {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(program, "security", "--offline=yes", "--no-pager", unitFile(t, scope, "/bin/true")).CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			found := regexp.MustCompile(`exposure level for .*: ([0-9.]+)`).FindSubmatch(out)
			if found == nil {
				t.Fatalf("no exposure:\n%s", out)
			}
			exposure, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil || exposure > most {
				t.Errorf("the exposure is %v, want at most %v:\n%s", exposure, most, out)
			}
		})
	}
}

func TestUnit_Words(t *testing.T) {
	t.Parallel()
	h := Host{OS: "linux", UserHome: "/home/a%b"}
	s := Service{
		Scope: User, Program: "/home/a%b/my bin/lm$caddy", Config: "/home/a%b/.lmcaddy/Caddyfile", Home: "/home/a%b/.lmcaddy", Path: "/usr/bin:/home/a%b/bin",
	}
	text := s.unit(h.UserHome)
	for _, line := range []string{
		`ExecStart="%h/my bin/lm$$caddy" run --config %h/.lmcaddy/Caddyfile`,
		"Environment=LMCADDY_HOME=%h/.lmcaddy",
		"Environment=PATH=/usr/bin:%h/bin",
		"EnvironmentFile=-%h/.lmcaddy/environment",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%q is missing:\n%s", line, text)
		}
	}
}
