//go:build release

package packages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The .rpm is installed, upgraded and removed, by rpm, in a system with systemd's programs.
func TestRPM(t *testing.T) {
	aptInstall(t, "rpm", "rpm")
	file, newer := packageOf(t, "v1.2.3", "*.rpm"), packageOf(t, "v1.2.4", "*.rpm")
	s := newSystem(t, "bookworm", "systemd")
	s.pretendToRun()
	rpm := func(args ...string) string { // with --nodeps, since the system's packages are Debian's
		t.Helper()
		return must(t, "rpm", append([]string{"--root", s.root}, args...)...)
	}
	if out := rpm("--install", "--nodeps", file); !strings.Contains(out, "systemctl enable --now lmcaddy") {
		t.Errorf("it doesn't say how to start the service: %s", out)
	}
	want := `-rwxr-xr-x root:root /usr/bin/lmcaddy
-rw-r--r-- root:root /etc/lmcaddy/Caddyfile
-rw-r--r-- root:root /usr/lib/systemd/system/lmcaddy.service
-rw-r--r-- root:root /usr/share/zsh/site-functions/_lmcaddy
-rw-r--r-- root:root /usr/share/licenses/lmcaddy/LICENSE
drwx------ lmcaddy:lmcaddy /var/lib/lmcaddy
`
	if got := s.modes("/usr/bin/lmcaddy", "/etc/lmcaddy/Caddyfile", "/usr/lib/systemd/system/lmcaddy.service",
		"/usr/share/zsh/site-functions/_lmcaddy", "/usr/share/licenses/lmcaddy/LICENSE", "/var/lib/lmcaddy"); got != want {
		t.Errorf("the files are\n%snot\n%s", got, want)
	}
	if out := s.run("lmcaddy", "version"); !strings.HasPrefix(out, "lmcaddy v1.2.3 ") {
		t.Errorf("it is %s", out)
	}
	if out := s.run("id", "lmcaddy"); !strings.Contains(out, "(render)") {
		t.Errorf("the account may not use GPUs: %s", out)
	}
	if out := rpm("--query", "--configfiles", "lmcaddy"); strings.TrimSpace(out) != "/etc/lmcaddy/Caddyfile" {
		t.Errorf("the files of the configuration are %s", out)
	}
	if calls := s.calls(); !mentions(calls, "daemon-reload") || mentions(calls, "start") || mentions(calls, "enable") {
		t.Errorf("systemd is told %q", calls)
	}
	must(t, "mkdir", filepath.Join(s.root, "/var/lib/lmcaddy", "models"))
	caddyfile := filepath.Join(s.root, "/etc/lmcaddy/Caddyfile")
	if err := os.WriteFile(caddyfile, []byte("# mine\n"), 0o644); err != nil { //nolint:gosec // like the package's
		t.Fatal(err)
	}
	rpm("--upgrade", "--nodeps", newer)
	if got := contentOf(t, caddyfile); got != "# mine\n" {
		t.Errorf("the Caddyfile is %q after an upgrade", got)
	}
	calls := s.calls()
	restart := slices.Index(calls, "try-restart lmcaddy.service")
	if reload := slices.Index(calls, "daemon-reload"); reload < 0 || restart < reload || !strings.HasPrefix(calls[restart+1], "lmcaddy v1.2.4 ") || mentions(calls, "disable") {
		t.Errorf("systemd is told %q", calls)
	}
	rpm("--erase", "--nodeps", "lmcaddy")
	if calls := s.calls(); !mentions(calls, "disable --now lmcaddy.service") {
		t.Errorf("systemd is told %q", calls)
	}
	if s.has("/usr/bin/lmcaddy") || !s.has("/var/lib/lmcaddy") || !s.has("/etc/lmcaddy/Caddyfile.rpmsave") {
		t.Error("erasing has left the program, or has deleted the home or the changed Caddyfile")
	}
}
