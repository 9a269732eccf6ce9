//go:build release

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packageOf makes a release for linux/amd64, and returns its package of a kind.
func packageOf(t *testing.T, version, pattern string) string {
	t.Helper()
	nfpm := os.Getenv("LMCADDY_NFPM")
	if nfpm == "" {
		t.Fatal("LMCADDY_NFPM names nfpm: run make release-test")
	}
	dist := makeRelease(t, version, nil, "-targets", "linux/amd64", "-nfpm", nfpm)
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// The .deb is installed, used, upgraded, removed and purged in a new Debian system.
func TestDeb(t *testing.T) {
	old, newer := packageOf(t, "v1.2.3", "*.deb"), packageOf(t, "v1.2.4", "*.deb")
	s := newSystem(t, "bookworm", "systemd")
	s.put(old, "/old.deb")
	s.put(newer, "/new.deb")
	s.pretendToRun()
	t.Run("it installs", func(t *testing.T) {
		out := s.run("dpkg", "--install", "/old.deb")
		if !strings.Contains(out, "systemctl enable --now lmcaddy") {
			t.Errorf("it doesn't say how to start the service: %s", out)
		}
		want := `-rwxr-xr-x root:root /usr/bin/lmcaddy
-rw-r--r-- root:root /etc/lmcaddy/Caddyfile
-rw-r--r-- root:root /usr/lib/systemd/system/lmcaddy.service
-rw-r--r-- root:root /usr/lib/sysusers.d/lmcaddy.conf
-rw-r--r-- root:root /usr/share/man/man8/lmcaddy-serve.8.gz
-rw-r--r-- root:root /usr/share/bash-completion/completions/lmcaddy
drwxr-xr-x root:root /etc/lmcaddy
drwx------ lmcaddy:lmcaddy /var/lib/lmcaddy
`
		var paths []string
		for line := range strings.Lines(want) {
			paths = append(paths, strings.Fields(line)[2])
		}
		if got := s.modes(paths...); got != want {
			t.Errorf("the files are\n%snot\n%s", got, want)
		}
		if out := s.run("/usr/bin/lmcaddy", "version"); !strings.HasPrefix(out, "lmcaddy v1.2.3 ") {
			t.Errorf("it is %s", out)
		}
		if out := s.run("id", "lmcaddy"); !strings.Contains(out, "(render)") || !strings.Contains(out, "(video)") {
			t.Errorf("the account may not use GPUs: %s", out)
		}
		if out := s.run("getent", "passwd", "lmcaddy"); !strings.Contains(out, ":/var/lib/lmcaddy:") || !strings.Contains(out, "nologin") {
			t.Errorf("the account: %s", out)
		}
		if s.has("/etc/systemd/system/multi-user.target.wants/lmcaddy.service") {
			t.Error("the service is enabled, and nobody has asked for it")
		}
		if calls := s.calls(); !slices.Contains(calls, "--system daemon-reload") || mentions(calls, "lmcaddy.service") {
			t.Errorf("systemd is told %q", calls)
		}
	})
	t.Run("the unit is right", func(t *testing.T) {
		if out := strings.TrimSpace(must(t, "systemd-analyze", "verify", "--man=no", "--root="+s.root, "/usr/lib/systemd/system/lmcaddy.service")); strings.Contains(out, "lmcaddy") {
			t.Error(out)
		}
	})
	t.Run("the service's command validates the Caddyfile", func(t *testing.T) {
		out := s.run("setpriv", "--reuid=lmcaddy", "--regid=lmcaddy", "--init-groups", "env", "LMCADDY_HOME=/tmp/home",
			"lmcaddy", "validate", "--config", "/etc/lmcaddy/Caddyfile")
		if !strings.Contains(out, "Valid configuration") {
			t.Error(out)
		}
	})
	t.Run("an upgrade keeps a changed Caddyfile, and restarts the service if it runs", func(t *testing.T) {
		file := filepath.Join(s.root, "/etc/lmcaddy/Caddyfile")
		if err := os.WriteFile(file, []byte("# mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		must(t, "mkdir", filepath.Join(s.root, "/var/lib/lmcaddy", "models"))
		s.run("dpkg", "--install", "/new.deb")
		if got := contentOf(t, file); got != "# mine\n" {
			t.Errorf("it is %q", got)
		}
		calls := s.calls()
		restart := slices.IndexFunc(calls, func(call string) bool { return strings.Contains(call, "try-restart lmcaddy.service") })
		if reload := slices.Index(calls, "--system daemon-reload"); reload < 0 || restart < reload || !strings.HasPrefix(calls[restart+1], "lmcaddy v1.2.4 ") {
			t.Errorf("systemd is told %q", calls)
		}
		if mentions(calls, " stop ") || mentions(calls, "disable") {
			t.Errorf("the service is stopped, too: %q", calls)
		}
	})
	t.Run("removing keeps the Caddyfile, purging the models", func(t *testing.T) {
		s.run("dpkg", "--remove", "lmcaddy")
		if calls := s.calls(); !mentions(calls, "stop lmcaddy.service") || !mentions(calls, "disable lmcaddy.service") {
			t.Errorf("systemd is told %q", calls)
		}
		if s.has("/usr/bin/lmcaddy") || s.has("/usr/lib/systemd/system/lmcaddy.service") || !s.has("/etc/lmcaddy/Caddyfile") {
			t.Error("removing has left the program, or has deleted the Caddyfile")
		}
		out := s.run("dpkg", "--purge", "lmcaddy")
		if s.has("/etc/lmcaddy") || !s.has("/var/lib/lmcaddy") || !strings.Contains(out, "were kept") {
			t.Errorf("purging has left /etc/lmcaddy, or has deleted the home: %s", out)
		}
	})
	t.Run("lintian finds nothing", func(t *testing.T) { lintian(t, old) })
}

// lintian fails if a package has what Debian's checker complains of.
func lintian(t *testing.T, file string) {
	t.Helper()
	aptInstall(t, "lintian", "lintian")
	out, err := exec.CommandContext(t.Context(), "lintian", "--fail-on", "error,warning", "--allow-root", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// mentions reports whether a call of systemctl has a text in it.
func mentions(calls []string, text string) bool {
	return slices.ContainsFunc(calls, func(call string) bool { return strings.Contains(call, text) })
}

// Without systemd, the account is made by adduser.
func TestDeb_WithoutSystemd(t *testing.T) {
	s := newSystem(t, "bookworm", "adduser")
	s.put(packageOf(t, "v1.2.3", "*.deb"), "/lmcaddy.deb")
	s.run("dpkg", "--install", "/lmcaddy.deb")
	if out := s.run("id", "lmcaddy"); !strings.Contains(out, "(video)") {
		t.Error(out)
	}
}
