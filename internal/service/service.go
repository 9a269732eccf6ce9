// Package service makes lmcaddy a service of the operating system: a unit of systemd, a job of launchd, or a Windows service. It writes
// their files and runs their programs (systemctl, launchctl, sc.exe), so it needs nothing of the system that it is built on.
package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name is the name of the unit, of the account and of the Windows service.
const Name = "lmcaddy"

// Scope says for whom a service runs.
type Scope string

// The scopes.
const (
	User   Scope = "user"   // as the user that installs it, with that user's home folder
	System Scope = "system" // at boot, as an account of its own where the system has such accounts
)

// Service is what is installed.
type Service struct {
	Scope   Scope
	Program string // the executable, an absolute path
	Config  string // the Caddyfile, an absolute path
	Home    string // the folder of all state, an absolute path
	Path    string // the search path for the engines and MCP servers of a user's service; empty: that of the system
}

// Status is what the system says about the service.
type Status struct {
	Scope     Scope  `json:"scope"`
	Manager   string `json:"manager"` // systemd, launchd or windows
	File      string `json:"file"`    // the definition; empty on Windows
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled"` // starts with the system, or with the user's session
	Running   bool   `json:"running"`
	State     string `json:"state"` // in the manager's words
	// Missing is the program that the service starts, if it doesn't exist any more.
	Missing string `json:"missing,omitempty"`
}

// Manager installs a service. Its errors are for the user.
type Manager interface {
	// Definition returns what Install would write, or on Windows the commands that it would run.
	Definition() string
	// Check returns why the service can't be installed, as far as that is known beforehand. It changes nothing.
	Check(ctx context.Context) error
	// Install writes the definition, and starts the service now and whenever the system or the session starts. Notes say what
	// the user may want to do next. A definition that was not written by Install is an error, unless force is set.
	Install(ctx context.Context, force bool) (notes []string, err error)
	// Uninstall stops the service, and removes its definition. The home and the Caddyfile stay. A definition that was not written
	// by Install is an error, unless force is set.
	Uninstall(ctx context.Context, force bool) error
	// Restart applies a changed Caddyfile. Where the manager can't reload it, the service ends and starts again.
	Restart(ctx context.Context) error
	// Status asks the manager.
	Status(ctx context.Context) (Status, error)
	// Logs prints the last lines of the log, and with follow those to come.
	Logs(ctx context.Context, lines int, follow bool) error
}

// Host is the machine and the user that install the service.
type Host struct {
	OS       string // as in runtime.GOOS
	Root     string // comes before the paths of the system's folders; empty, except in tests
	UID      int
	UserName string // for a service of macOS that is installed with sudo, the user who called it
	UserHome string
	// Run runs a program, and returns what it printed. The error has that as well.
	Run func(ctx context.Context, program string, args ...string) (string, error)
	// Show runs a program on this process's terminal.
	Show func(ctx context.Context, program string, args ...string) error
}

// ThisHost returns the machine and the user of this process.
func ThisHost() (Host, error) {
	dir, err := os.UserHomeDir()
	if err != nil {
		return Host{}, fmt.Errorf("looking for the user's home folder: %w", err)
	}
	h := Host{OS: runtime.GOOS, UID: os.Getuid(), UserHome: dir, Run: run, Show: show}
	if who, err := user.Current(); err == nil {
		h.UserName = who.Username
	}
	if who, err := user.Lookup(os.Getenv("SUDO_USER")); err == nil && h.UID == 0 && h.OS == "darwin" {
		h.UserName, h.UserHome = who.Username, who.HomeDir
	}
	return h, nil
}

// New returns the manager of a host's services.
func New(h Host, s Service) (Manager, error) {
	switch h.OS {
	case "linux":
		return &systemd{h, s}, nil
	case "darwin":
		return &launchd{h, s}, nil
	case "windows":
		return &scm{h, s}, nil
	default:
		return nil, fmt.Errorf("there are no services for %s: start \"lmcaddy run\" as this system starts its own services", h.OS)
	}
}

// checkPaths refuses paths that a definition of a service can't have: in a unit of systemd, a newline would begin another setting.
func (s Service) checkPaths() error {
	for _, path := range []string{s.Program, s.Config, s.Home} {
		if strings.ContainsFunc(path, unicode.IsControl) || !utf8.ValidString(path) {
			return fmt.Errorf("a service can't have the path %q, which has control characters in it, or isn't in UTF-8: choose another",
				path)
		}
	}
	return nil
}

// DefaultScope is the scope that a user has the rights to install.
func (h Host) DefaultScope() Scope {
	if h.OS == "windows" || h.UID == 0 {
		return System
	}
	return User
}

// Defaults returns the service of a scope, for an executable, with the usual paths. home is the home of the user's service.
func (h Host) Defaults(scope Scope, program, home string) Service {
	s := Service{Scope: scope, Program: program, Home: home}
	switch {
	case h.OS == "linux" && scope == System:
		s.Home, s.Config = "/var/lib/lmcaddy", "/etc/lmcaddy/Caddyfile"
		return s
	case h.OS == "darwin" && scope == System:
		s.Home = filepath.Join(h.UserHome, ".lmcaddy")
	case h.OS == "windows":
		s.Home = filepath.Join(os.Getenv("ProgramData"), Name)
	}
	s.Config = filepath.Join(s.Home, "Caddyfile")
	if h.OS != "windows" {
		s.Path = searchPath(os.Getenv("PATH"))
	}
	return s
}

// searchPath returns what a service keeps of a user's search path, which has the folders of the engines and MCP servers that the server
// starts by name: absolute folders of which not everybody can write, and that outlive the session.
func searchPath(path string) string {
	session := os.Getenv("XDG_RUNTIME_DIR")
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if isBelow(dir, session) { // where managers of versions link to the one of this terminal
			dir, _ = filepath.EvalSymlinks(dir)
		}
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() && info.Mode().Perm()&0o002 == 0 && filepath.IsAbs(dir) && !isBelow(dir, session) &&
			!strings.ContainsFunc(dir, unicode.IsControl) && !slices.Contains(kept, dir) {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// isBelow reports whether a path is in a folder, which may be "".
func isBelow(path, folder string) bool {
	return folder != "" && strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// LogFile is where the default Caddyfile puts the log on systems whose services have none.
func (s Service) LogFile() string { return filepath.Join(s.Home, "logs", "lmcaddy.log") }

func run(ctx context.Context, program string, args ...string) (string, error) {
	out, err := command(ctx, program, args).CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return said, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSuffix(said, "."))
	}
	return said, nil
}

func show(ctx context.Context, program string, args ...string) error {
	cmd := command(ctx, program, args)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// command returns a command with this process's environment, without the variables that this process sets for itself: the
// system's programs would read them as the user's.
func command(ctx context.Context, program string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "XDG_DATA_HOME=") && !strings.HasPrefix(variable, "XDG_CONFIG_HOME=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	return cmd
}
