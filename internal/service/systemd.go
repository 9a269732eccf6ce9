package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type systemd struct {
	host Host
	of   Service
}

const unitName = Name + ".service"

func (m *systemd) Definition() string { return m.of.unit(m.host.UserHome) }

func (m *systemd) file() string {
	if m.of.Scope == System {
		return m.host.Root + "/etc/systemd/system/" + unitName
	}
	return filepath.Join(m.host.UserHome, ".config", "systemd", "user", unitName)
}

func (m *systemd) sysusers() string { return m.host.Root + "/etc/sysusers.d/lmcaddy.conf" }

func (m *systemd) ctl(ctx context.Context, args ...string) (string, error) {
	if m.of.Scope == User {
		args = append([]string{"--user"}, args...)
	}
	said, err := m.host.Run(ctx, "systemctl", args...)
	if err != nil && (strings.Contains(said, "connect to bus") || strings.Contains(said, "not been booted with systemd") ||
		errors.Is(err, exec.ErrNotFound)) {
		if m.of.Scope == User {
			err = errors.New("systemd doesn't answer for this user: log in as the user directly, rather than with su or sudo, " +
				"or install the system's service with \"sudo lmcaddy service install --system\"")
		} else {
			err = errors.New("systemd doesn't run here: start \"lmcaddy run\" the way this system starts its own services")
		}
	}
	return said, err
}

func (m *systemd) Install(ctx context.Context, force bool) ([]string, error) {
	if err := m.Check(ctx); err != nil {
		return nil, err
	}
	if s, err := m.Status(ctx); err == nil && s.Installed && s.File != m.file() && !force {
		return nil, fmt.Errorf("%s is a unit of lmcaddy already, which came with a package: \"%s\" starts it, "+
			"and --force hides it behind one of your own", s.File, m.change("enable"))
	}
	if _, err := user.Lookup(Name); m.of.Scope == System && (err != nil || m.host.Root != "") { // it has no account yet
		if err := put(m.sysusers(), Sysusers, false); err != nil {
			return nil, err
		}
		if _, err := m.host.Run(ctx, "systemd-sysusers", m.sysusers()); err != nil {
			return nil, fmt.Errorf("making the account lmcaddy: %w", err)
		}
	}
	if err := put(m.file(), m.Definition(), force); err != nil {
		return nil, err
	}
	if _, err := m.ctl(ctx, "daemon-reload"); err != nil {
		return nil, err
	}
	for _, action := range []string{"enable", "restart"} {
		if _, err := m.ctl(ctx, action, unitName); err != nil {
			return nil, fmt.Errorf("%w. \"lmcaddy service logs --%s\" shows why", err, m.of.Scope)
		}
	}
	return m.notes(ctx), nil
}

// Check refuses what systemd would only fail at, and asks whether it answers.
func (m *systemd) Check(ctx context.Context) error {
	if err := m.of.checkPaths(); err != nil {
		return err
	}
	if at := strings.IndexAny(m.of.Program, "$'\"\\"); at >= 0 { // systemd takes none of them in a program's path, however it is written
		return fmt.Errorf("systemd can't start %s, whose path has a %c in it: copy the program elsewhere, and run that", m.of.Program,
			m.of.Program[at])
	}
	if err := m.checkScope(); err != nil {
		return err
	}
	_, err := m.ctl(ctx, "show", "--property=Version")
	return err
}

// checkScope refuses a service that this user can't install, or whose files its own user couldn't reach.
func (m *systemd) checkScope() error {
	if m.of.Scope == User {
		if m.host.UID == 0 {
			return errors.New("root has no session in which a user's service runs: use --system, " +
				"or run this command as the user, without sudo")
		}
		return nil
	}
	if m.host.UID != 0 {
		return errors.New("the system's service is installed by root: use \"sudo lmcaddy service install --system\", " +
			"or --user for a service of your own")
	}
	for _, path := range []string{m.of.Program, m.of.Config} {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = path // a Caddyfile that is yet to be made
		}
		for _, hidden := range []string{"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"} {
			if strings.HasPrefix(path, hidden) || strings.HasPrefix(real, hidden) {
				return fmt.Errorf("the system's service can't see %s, since it is below %s: copy it elsewhere first, "+
					"the program for example with \"sudo install %s /usr/local/bin/lmcaddy\", and run that",
					path, hidden, real)
			}
		}
	}
	if closed := closedTo(m.of.Program); closed != "" {
		return fmt.Errorf("the user lmcaddy can't start %s, since only some may use %s: "+
			"copy the program with \"sudo install %s /usr/local/bin/lmcaddy\", and run that",
			m.of.Program, closed, m.of.Program)
	}
	return nil
}

// closedTo returns what keeps users other than its owner from executing a program: the program itself, or a folder on the way.
// Empty is nothing.
func closedTo(program string) string {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "" // systemd says that there is none
	}
	for ; ; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o001 == 0 {
			return path
		}
		if path == filepath.Dir(path) {
			return ""
		}
	}
}

func (m *systemd) notes(ctx context.Context) []string {
	if m.of.Scope == System {
		return []string{
			"It runs as the user lmcaddy, with its state in " + m.of.Home +
				". Commands for it are run as that user: sudo -u lmcaddy LMCADDY_HOME=" + m.of.Home + " lmcaddy ls",
		}
	}
	said, err := m.host.Run(ctx, "loginctl", "show-user", m.host.UserName, "--property=Linger")
	if err == nil && strings.TrimSpace(said) == "Linger=yes" {
		return nil
	}
	return []string{"It ends when you log out, and starts when you log in. To have it run always: sudo loginctl enable-linger " +
		m.host.UserName}
}

func (m *systemd) Uninstall(ctx context.Context, force bool) error {
	switch {
	case !exists(m.file()):
		if s, err := m.Status(ctx); err == nil && s.Installed {
			return fmt.Errorf("the service is that of %s, which \"lmcaddy service install\" hasn't written: "+
				"remove the package that it came with, or stop it with \"%s\"", s.File, m.change("disable"))
		}
		return notInstalled(m.of.Scope)
	case m.of.Scope == System && m.host.UID != 0:
		return errors.New("the system's service is removed by root: use \"sudo lmcaddy service uninstall --system\"")
	}
	if err := checkOurs(m.file(), force); err != nil {
		return err
	}
	if _, err := m.ctl(ctx, "disable", "--now", unitName); err != nil {
		return err
	}
	if err := os.Remove(m.file()); err != nil {
		return err
	}
	if m.of.Scope == System && exists(m.sysusers()) && isOurs(m.sysusers()) {
		if err := os.Remove(m.sysusers()); err != nil {
			return err
		}
	}
	_, err := m.ctl(ctx, "daemon-reload")
	return err
}

// change is the command that enables or disables the service, and starts or stops it.
func (m *systemd) change(to string) string {
	if m.of.Scope == User {
		return "systemctl --user " + to + " --now " + Name
	}
	return "sudo systemctl " + to + " --now " + Name
}

func notInstalled(scope Scope) error {
	return fmt.Errorf("there is no %s's service of lmcaddy: \"lmcaddy service install --%s\" makes one", scope, scope)
}

func (m *systemd) Restart(ctx context.Context) error {
	s, err := m.Status(ctx)
	if err != nil {
		return err
	}
	if !s.Installed {
		return notInstalled(m.of.Scope)
	}
	if _, err := m.ctl(ctx, "reload-or-restart", unitName); err != nil {
		if m.of.Scope == System && m.host.UID != 0 {
			return fmt.Errorf("%w. Root can do it: \"sudo lmcaddy service restart --system\"", err)
		}
		return fmt.Errorf("%w. \"lmcaddy service logs --%s\" shows why", err, m.of.Scope)
	}
	return nil
}

var shown = []string{"LoadState", "ActiveState", "SubState", "UnitFileState", "FragmentPath", "StatusText", "ExecStart"}

func (m *systemd) Status(ctx context.Context) (Status, error) {
	s := Status{Scope: m.of.Scope, Manager: "systemd", File: m.file()}
	said, err := m.ctl(ctx, "show", unitName, "--property="+strings.Join(shown, ","))
	if err != nil {
		return s, err
	}
	got := map[string]string{}
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	if path := got["FragmentPath"]; path != "" {
		s.File = path // such as that of a package
	}
	s.Installed = got["LoadState"] == "loaded"
	s.Enabled = slices.Contains([]string{"enabled", "enabled-runtime", "linked"}, got["UnitFileState"])
	s.Running = slices.Contains([]string{"active", "reloading"}, got["ActiveState"])
	s.State = got["ActiveState"]
	if sub := got["SubState"]; sub != "" && sub != s.State {
		s.State += " (" + sub + ")"
	}
	if text := got["StatusText"]; text != "" && !s.Running {
		s.State += ": " + text
	}
	_, start, _ := strings.Cut(got["ExecStart"], "{ path=") // "{ path=/usr/bin/lmcaddy ; argv[]=... }"
	if program, _, ok := strings.Cut(start, " ; argv[]="); ok && !s.Running && !exists(program) {
		s.Missing = program
	}
	return s, nil
}

func (m *systemd) Logs(ctx context.Context, lines int, follow bool) error {
	args := []string{"--unit", unitName, "--lines", strconv.Itoa(lines), "--no-pager"}
	if m.of.Scope == User {
		args = append([]string{"--user"}, args...)
	}
	if follow {
		args = append(args, "--follow")
	}
	return m.host.Show(ctx, "journalctl", args...)
}
