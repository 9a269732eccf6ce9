package service

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// launchd is the manager of macOS: an agent in the user's session, or a daemon that runs as the user who installs it, since the
// models and engines are in that user's folder.
type launchd struct {
	host Host
	of   Service
}

const label = "io.github.lmcaddy"

func (m *launchd) file() string {
	if m.of.Scope == System {
		return m.host.Root + "/Library/LaunchDaemons/" + label + ".plist"
	}
	return filepath.Join(m.host.UserHome, "Library", "LaunchAgents", label+".plist")
}

// domain is where launchd keeps the job.
func (m *launchd) domain() string {
	if m.of.Scope == System {
		return "system"
	}
	return "gui/" + strconv.Itoa(m.host.UID)
}

func (m *launchd) target() string { return m.domain() + "/" + label }

// startLog is the file for what the process prints, other than to the log of the Caddyfile. Both folders are there on every Mac.
func (m *launchd) startLog() string {
	if m.of.Scope == System {
		return "/Library/Logs/lmcaddy.log"
	}
	return filepath.Join(m.host.UserHome, "Library", "Logs", "lmcaddy.log")
}

// Definition returns the property list. launchd's own limit of 256 open files is too low for a server.
func (m *launchd) Definition() string {
	text := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder can't fail
		return "<string>" + b.String() + "</string>"
	}
	who := ""
	if m.of.Scope == System {
		who = "\n\t<key>UserName</key>\n\t" + text(m.host.UserName)
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ` + mark + ` -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	` + text(label) + who + `
	<key>ProgramArguments</key>
	<array>
		` + text(m.of.Program) + `
		<string>run</string>
		<string>--config</string>
		` + text(m.of.Config) + `
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>LMCADDY_HOME</key>
		` + text(m.of.Home) + `
		<key>PATH</key>
		` + text(m.of.Path) + `
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ExitTimeOut</key>
	<integer>120</integer>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>SoftResourceLimits</key>
	<dict>
		<key>NumberOfFiles</key>
		<integer>65536</integer>
	</dict>
	<key>Umask</key>
	<integer>63</integer>
	<key>StandardOutPath</key>
	` + text(m.startLog()) + `
	<key>StandardErrorPath</key>
	` + text(m.startLog()) + `
</dict>
</plist>
`
}

func (m *launchd) Check(context.Context) error {
	switch err := m.of.checkPaths(); {
	case err != nil:
		return err
	case m.of.Scope == System && m.host.UID != 0:
		return errors.New("a service that starts with the Mac is installed by root: use \"sudo lmcaddy service install --system\", " +
			"or --user for one that starts when you log in")
	case m.host.UserName == "root" || m.of.Scope == User && m.host.UID == 0:
		return errors.New("the service runs as the user whose models it serves: as that user, use \"lmcaddy service install\", " +
			"or \"sudo lmcaddy service install --system\"")
	case m.of.Scope == System && !exists(m.of.Home): // root must not make it
		return fmt.Errorf("there is no folder %s yet: as %s, get an engine first, with \"lmcaddy runtime get llama.cpp\"", m.of.Home,
			m.host.UserName)
	}
	return nil
}

func (m *launchd) Install(ctx context.Context, force bool) ([]string, error) {
	if err := m.Check(ctx); err != nil {
		return nil, err
	}
	if err := put(m.file(), m.Definition(), force); err != nil {
		return nil, err
	}
	if err := m.unload(ctx); err != nil { // an older one
		return nil, err
	}
	if _, err := m.host.Run(ctx, "launchctl", "bootstrap", m.domain(), m.file()); err != nil {
		return nil, fmt.Errorf("%w. \"lmcaddy service logs --%s\" may show why", err, m.of.Scope)
	}
	if m.of.Scope == User {
		return []string{"It starts when you log in. To have it start with the Mac: lmcaddy service uninstall, " +
			"then sudo lmcaddy service install --system"}, nil
	}
	return []string{"It starts with the Mac, and runs as " + m.host.UserName + ", with its state in " + m.of.Home + "."}, nil
}

func (m *launchd) Uninstall(ctx context.Context, force bool) error {
	switch {
	case !exists(m.file()):
		return notInstalled(m.of.Scope)
	case m.of.Scope == System && m.host.UID != 0:
		return errors.New("a service that starts with the Mac is removed by root: use \"sudo lmcaddy service uninstall --system\"")
	}
	if err := checkOurs(m.file(), force); err != nil {
		return err
	}
	if err := m.unload(ctx); err != nil {
		return err
	}
	return os.Remove(m.file())
}

// unloadTime is more than the ExitTimeOut of the job, after which launchd kills it.
const unloadTime = 130 * time.Second

// unload ends the job if it is loaded. launchctl returns before a server has answered its last requests, and until then no job
// of that name can be loaded.
func (m *launchd) unload(ctx context.Context) error {
	_, failed := m.host.Run(ctx, "launchctl", "bootout", m.target()) // it also fails for a job that isn't loaded
	for end := time.Now().Add(unloadTime); ; {
		if _, err := m.host.Run(ctx, "launchctl", "print", m.target()); err != nil {
			return nil //nolint:nilerr // it isn't loaded any more
		}
		if failed != nil && exitStatus(failed) != inProgress || time.Now().After(end) {
			return cmp.Or(failed, errors.New("the service doesn't end: \"lmcaddy stop\" ends it"))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second / 2):
		}
	}
}

// inProgress is the exit status of launchctl bootout for a job that is ending (EINPROGRESS).
const inProgress = 36

func (m *launchd) Restart(ctx context.Context) error {
	if !exists(m.file()) {
		return notInstalled(m.of.Scope)
	}
	_, err := m.host.Run(ctx, "launchctl", "kickstart", "-k", m.target())
	return err
}

func (m *launchd) Status(ctx context.Context) (Status, error) {
	s := Status{Scope: m.of.Scope, Manager: "launchd", File: m.file(), Installed: exists(m.file()), State: "not loaded"}
	said, err := m.host.Run(ctx, "launchctl", "print", m.target())
	if err != nil {
		return s, nil //nolint:nilerr // it fails for a job that isn't loaded
	}
	s.Enabled = s.Installed
	for line := range strings.Lines(said) {
		if state, ok := strings.CutPrefix(strings.TrimSpace(line), "state = "); ok {
			s.State, s.Running = state, state == "running"
			break // further states are those of parts of the job
		}
	}
	return s, nil
}

func (m *launchd) Logs(ctx context.Context, lines int, follow bool) error {
	args := []string{"-n", strconv.Itoa(lines)}
	if follow {
		args = append(args, "-F")
	}
	file := m.of.LogFile()
	if !exists(file) {
		file = m.startLog()
	}
	return m.host.Show(ctx, "tail", append(args, file)...)
}
