package service

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exit is the error of a program that ended with a status.
type exit int

func (e exit) Error() string { return "exit status" }
func (e exit) ExitCode() int { return int(e) }

// fakeHost is a host whose programs only note that they were called. answers are what they print, by a part of the call.
type fakeHost struct {
	Host
	calls   []string
	answers map[string]string
	fails   map[string]error
}

func newHost(t *testing.T, goos string, uid int) *fakeHost {
	t.Helper()
	f := &fakeHost{answers: map[string]string{}, fails: map[string]error{}}
	f.Host = Host{OS: goos, UID: uid, UserName: "ann", UserHome: t.TempDir(), Root: t.TempDir()}
	f.Run = func(_ context.Context, program string, args ...string) (string, error) {
		call := strings.Join(append([]string{program}, args...), " ")
		call = strings.ReplaceAll(strings.ReplaceAll(call, f.Root, ""), f.UserHome, "~")
		f.calls = append(f.calls, call)
		for part, err := range f.fails {
			if strings.Contains(call, part) {
				return f.answers[part], err
			}
		}
		for part, answer := range f.answers {
			if strings.Contains(call, part) {
				return answer, nil
			}
		}
		return "", nil
	}
	f.Show = func(ctx context.Context, program string, args ...string) error {
		_, err := f.Run(ctx, program, args...)
		return err
	}
	return f
}

func (f *fakeHost) manager(t *testing.T, scope Scope) Manager {
	t.Helper()
	m, err := New(f.Host, f.Defaults(scope, "/usr/local/bin/lmcaddy", filepath.Join(f.UserHome, ".lmcaddy")))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestInstall_Systemd(t *testing.T) {
	t.Parallel()
	const asks = "show lmcaddy.service --property=LoadState,ActiveState,SubState,UnitFileState,FragmentPath,StatusText,ExecStart"
	for name, tt := range map[string]struct {
		scope   Scope
		uid     int
		file    func(*fakeHost) string
		install []string
		notes   int
		remove  []string
	}{
		"of a user": {
			scope: User, uid: 1000,
			file: func(f *fakeHost) string { return f.UserHome + "/.config/systemd/user/lmcaddy.service" },
			install: []string{
				"systemctl --user show --property=Version", "systemctl --user " + asks, "systemctl --user daemon-reload", "systemctl --user enable lmcaddy.service", "systemctl --user restart lmcaddy.service",
				"loginctl show-user ann --property=Linger",
			},
			notes:  1,
			remove: []string{"systemctl --user disable --now lmcaddy.service", "systemctl --user daemon-reload"},
		},
		"of the system": {
			scope: System, uid: 0,
			file: func(f *fakeHost) string { return f.Root + "/etc/systemd/system/lmcaddy.service" },
			install: []string{
				"systemctl show --property=Version", "systemctl " + asks, "systemd-sysusers /etc/sysusers.d/lmcaddy.conf", "systemctl daemon-reload", "systemctl enable lmcaddy.service",
				"systemctl restart lmcaddy.service",
			},
			notes:  1,
			remove: []string{"systemctl disable --now lmcaddy.service", "systemctl daemon-reload"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHost(t, "linux", tt.uid)
			m := f.manager(t, tt.scope)
			notes, err := m.Install(t.Context(), false)
			if err != nil || len(notes) != tt.notes {
				t.Fatalf("notes %q, error %v", notes, err)
			}
			if diff := cmp.Diff(tt.install, f.calls); diff != "" {
				t.Errorf("the calls (-want +got):\n%s", diff)
			}
			if text, err := os.ReadFile(tt.file(f)); err != nil || string(text) != m.Definition() {
				t.Errorf("the unit is %q, error %v", text, err)
			}
			f.calls = nil
			if err := m.Uninstall(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.remove, f.calls); diff != "" {
				t.Errorf("the calls (-want +got):\n%s", diff)
			}
			if exists(tt.file(f)) {
				t.Error("the unit is still there")
			}
			if err := m.Uninstall(t.Context(), false); err == nil {
				t.Error("a service that isn't installed was removed")
			}
		})
	}
}

func TestInstall_ReplacesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	f := newHost(t, "linux", 1000)
	m := f.manager(t, User)
	path := f.UserHome + "/.config/systemd/user/lmcaddy.service"
	if err := write(path, "[Service]\nExecStart=/opt/mine\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), false); err == nil || len(f.calls) > 2 { // which ask what there is
		t.Fatalf("a unit of somebody else was replaced: error %v, calls %q", err, f.calls)
	}
	if err := m.Uninstall(t.Context(), false); err == nil || !strings.Contains(err.Error(), "--force") || !exists(path) {
		t.Fatalf("a unit of somebody else was removed: %v", err)
	}
	if err := m.Uninstall(t.Context(), true); err != nil || exists(path) {
		t.Errorf("it wasn't removed: %v", err)
	}
	if err := write(path, "[Service]\nExecStart=/opt/mine\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), false); err != nil {
		t.Errorf("its own unit wasn't replaced: %v", err)
	}
}

// What another has written for the system, such as a package or an account of the same name, stays.
func TestUninstall_OfWhatOthersHaveWritten(t *testing.T) {
	t.Parallel()
	f := newHost(t, "linux", 0)
	m := f.manager(t, System)
	accounts := f.Root + "/etc/sysusers.d/lmcaddy.conf"
	if err := errors.Join(write(accounts, "u lmcaddy 900\n"), write(f.Root+"/etc/systemd/system/lmcaddy.service", m.Definition())); err != nil {
		t.Fatal(err)
	}
	if err := m.Uninstall(t.Context(), false); err != nil || !exists(accounts) {
		t.Errorf("error %v, and the file of accounts is there: %v", err, exists(accounts))
	}
	f.answers["show"] = "LoadState=loaded\nFragmentPath=/usr/lib/systemd/system/lmcaddy.service\n"
	if _, err := m.Install(t.Context(), false); err == nil || !strings.Contains(err.Error(), "sudo systemctl enable --now lmcaddy") {
		t.Errorf("a unit of its own would hide a package's: %v", err)
	}
	if err := m.Uninstall(t.Context(), false); err == nil || !strings.Contains(err.Error(), "remove the package") {
		t.Errorf("a package's service: %v", err)
	}
	f = newHost(t, "linux", 1000)
	m = f.manager(t, System)
	if err := write(f.Root+"/etc/systemd/system/lmcaddy.service", m.Definition()); err != nil {
		t.Fatal(err)
	}
	if err := m.Uninstall(t.Context(), true); err == nil || !strings.Contains(err.Error(), "sudo lmcaddy service uninstall") {
		t.Errorf("without root: %v", err)
	}
}

func TestRestart_OfWhatIsNotInstalled(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin"} {
		f := newHost(t, goos, 501)
		f.answers["show"] = "LoadState=not-found\n"
		if err := f.manager(t, User).Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "service install") {
			t.Errorf("%s: %v", goos, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		goos  string
		uid   int
		scope Scope
		edit  func(*Service)
		said  string
	}{
		"the system's, without root":      {"linux", 1000, System, nil, "sudo lmcaddy service install --system"},
		"a user's, as root":               {"linux", 0, User, nil, "use --system"},
		"a program that can't be seen":    {"linux", 0, System, func(s *Service) { s.Program = "/home/ann/bin/lmcaddy" }, "can't see /home/ann/bin/lmcaddy"},
		"a Caddyfile that can't be":       {"linux", 0, System, func(s *Service) { s.Config = "/root/Caddyfile" }, "can't see /root/Caddyfile"},
		"a program for the moment":        {"linux", 0, System, func(s *Service) { s.Program = "/tmp/lmcaddy" }, "can't see /tmp/lmcaddy"},
		"a program for some days":         {"linux", 0, System, func(s *Service) { s.Program = "/var/tmp/lmcaddy" }, "can't see /var/tmp/lmcaddy"},
		"a program of a session":          {"linux", 0, System, func(s *Service) { s.Program = "/run/user/1000/lmcaddy" }, "can't see /run/user/1000/lmcaddy"},
		"a home with another line in it":  {"linux", 1000, User, func(s *Service) { s.Home += "\nExecStartPre=/bin/x" }, "control characters"},
		"a program with a variable in it": {"linux", 1000, User, func(s *Service) { s.Program = "/opt/$x/lmcaddy" }, "has a $ in it"},
		"a program with a quote in it":    {"linux", 1000, User, func(s *Service) { s.Program = "/opt/ann's/lmcaddy" }, "has a ' in it"},
		"a program with a backslash":      {"linux", 1000, User, func(s *Service) { s.Program = `/opt/a\b/lmcaddy` }, `has a \ in it`},
		"a home that isn't in UTF-8":      {"linux", 1000, User, func(s *Service) { s.Home += "\xff" }, "UTF-8"},
		"an agent's home with two lines":  {"darwin", 501, User, func(s *Service) { s.Home += "\nx" }, "control characters"},
		"a daemon, without root":          {"darwin", 501, System, nil, "sudo"},
		"an agent, as root":               {"darwin", 0, User, nil, "as that user"},
		"a daemon, before there's a home": {"darwin", 0, System, nil, "get an engine first"},
		"Windows, for a user":             {"windows", -1, User, nil, "--system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHost(t, tt.goos, tt.uid)
			s := f.Defaults(tt.scope, "/usr/local/bin/lmcaddy", filepath.Join(f.UserHome, ".lmcaddy"))
			if tt.edit != nil {
				tt.edit(&s)
			}
			m, err := New(f.Host, s)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.said) {
				t.Errorf("error %v, want one with %q", err, tt.said)
			}
			if _, err := m.Install(t.Context(), true); err == nil || len(f.calls) > 0 {
				t.Errorf("it was installed: error %v, calls %q", err, f.calls)
			}
		})
	}
}

func TestInstall_WhenSystemdDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		uid    int
		scope  Scope
		answer string
		fails  error
		said   string
	}{
		"no session":      {1000, User, "Failed to connect to bus: No medium found", exit(1), "--system"},
		"another init":    {0, System, "System has not been booted with systemd as init system", exit(1), "lmcaddy run"},
		"no such program": {0, System, "", exec.ErrNotFound, "lmcaddy run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHost(t, "linux", tt.uid)
			f.answers["systemctl"], f.fails["systemctl"] = tt.answer, tt.fails
			_, err := f.manager(t, tt.scope).Install(t.Context(), false)
			if err == nil || !strings.Contains(err.Error(), tt.said) {
				t.Errorf("error %v, want one with %q", err, tt.said)
			}
			for _, folder := range []string{f.Root, f.UserHome} {
				if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
					t.Errorf("something was written: %v, error %v", entries, err)
				}
			}
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		goos    string
		answers map[string]string
		fails   map[string]error
		want    Status
	}{
		"systemd, running": {
			goos: "linux", answers: map[string]string{"show": "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nFragmentPath=/usr/lib/systemd/system/lmcaddy.service\nStatusText=\n"},
			want: Status{Scope: System, Manager: "systemd", File: "/usr/lib/systemd/system/lmcaddy.service", Installed: true, Enabled: true, Running: true, State: "active (running)"},
		},
		"systemd, failed": {
			goos: "linux", answers: map[string]string{"show": "LoadState=loaded\nActiveState=failed\nSubState=failed\nUnitFileState=disabled\nStatusText=no such file\n"},
			want: Status{Scope: System, Manager: "systemd", File: "/etc/systemd/system/lmcaddy.service", Installed: true, State: "failed: no such file"},
		},
		"systemd, its program is gone": {
			goos: "linux", answers: map[string]string{"show": "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nUnitFileState=enabled\nExecStart={ path=/nowhere/my bin ; argv[]=/nowhere/my bin run ; ignore_errors=no }\n"},
			want: Status{Scope: System, Manager: "systemd", File: "/etc/systemd/system/lmcaddy.service", Installed: true, Enabled: true, State: "activating (auto-restart)", Missing: "/nowhere/my bin"},
		},
		"systemd, nothing": {
			goos: "linux", answers: map[string]string{"show": "LoadState=not-found\nActiveState=inactive\nSubState=dead\n"},
			want: Status{Scope: System, Manager: "systemd", File: "/etc/systemd/system/lmcaddy.service", State: "inactive (dead)"},
		},
		"launchd, nothing": {
			goos: "darwin", fails: map[string]error{"print": exit(113)},
			want: Status{Scope: System, Manager: "launchd", File: "/Library/LaunchDaemons/io.github.lmcaddy.plist", State: "not loaded"},
		},
		"launchd, running": {
			goos: "darwin", answers: map[string]string{"print": "system/io.github.lmcaddy = {\n\tactive count = 1\n\tstate = running\n\n\tendpoint = {\n\t\tstate = waiting\n"},
			want: Status{Scope: System, Manager: "launchd", File: "/Library/LaunchDaemons/io.github.lmcaddy.plist", Running: true, State: "running"},
		},
		"Windows, nothing": {
			goos: "windows", fails: map[string]error{"query": exit(1060)},
			want: Status{Scope: System, Manager: "windows", State: "not installed"},
		},
		"Windows, in German": {
			goos: "windows", answers: map[string]string{"query": "SERVICE_NAME: lmcaddy\n        TYP                : 10  WIN32_OWN_PROCESS\n        STATUS             : 1  STOPPED\n"},
			want: Status{Scope: System, Manager: "windows", Installed: true, State: "stopped"},
		},
		"Windows, running": {
			goos: "windows", answers: map[string]string{
				"query": "SERVICE_NAME: lmcaddy\n        TYPE               : 10  WIN32_OWN_PROCESS\n        STATE              : 4  RUNNING\n",
				"qc":    "        START_TYPE         : 2   AUTO_START\n",
			},
			want: Status{Scope: System, Manager: "windows", Installed: true, Enabled: true, Running: true, State: "running"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHost(t, tt.goos, 0)
			maps.Copy(f.answers, tt.answers)
			maps.Copy(f.fails, tt.fails)
			got, err := f.manager(t, System).Status(t.Context())
			got.File = strings.TrimPrefix(got.File, f.Root)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	for goos, want := range map[string]string{
		"linux":   "journalctl --unit lmcaddy.service --lines 20 --no-pager --follow",
		"darwin":  "tail -n 20 -F /Library/Logs/lmcaddy.log",
		"windows": "powershell.exe -NoProfile -Command Get-Content -LiteralPath ",
	} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			f := newHost(t, goos, 0)
			if err := f.manager(t, System).Logs(t.Context(), 20, true); err != nil {
				t.Fatal(err)
			}
			if len(f.calls) != 1 || !strings.HasPrefix(f.calls[0], want) {
				t.Errorf("%q, want %q", f.calls, want)
			}
		})
	}
}
