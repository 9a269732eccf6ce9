package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// scm is the service control manager of Windows. Caddy answers it when the program is started as a service. The service's account
// is a virtual one, NT SERVICE\lmcaddy, which has no rights but those that it is given here.
type scm struct {
	host Host
	of   Service
}

const (
	virtualAccount = `NT SERVICE\` + Name
	registryKey    = `HKLM\SYSTEM\CurrentControlSet\Services\` + Name
	noService      = 1060 // the exit status of sc.exe for a service that doesn't exist
)

// commands are those that make the service. sc.exe takes a value as the argument that follows its name.
func (m *scm) commands() [][]string {
	start := quoted(m.of.Program) + " run --config " + quoted(m.of.Config)
	return [][]string{
		{"sc.exe", "create", Name, "binPath=", start, "start=", "auto", "obj=", virtualAccount, "DisplayName=", "lmcaddy model server"},
		{"sc.exe", "description", Name, "Serves models over OpenAI-style, Anthropic-style, Ollama's and LM Studio's APIs."},
		// Three restarts five seconds after a failure; a day without one forgets them. A failure is any exit with an error.
		{"sc.exe", "failure", Name, "reset=", "86400", "actions=", "restart/5000/restart/5000/restart/60000"},
		{"sc.exe", "failureflag", Name, "1"},
		{"reg.exe", "add", registryKey, "/v", "Environment", "/t", "REG_MULTI_SZ", "/d", "LMCADDY_HOME=" + m.of.Home, "/f"},
		// The home is for the service and for administrators alone.
		{"icacls.exe", m.of.Home, "/inheritance:r", "/grant", virtualAccount + ":(OI)(CI)F", "/grant", "*S-1-5-32-544:(OI)(CI)F"},
		{"sc.exe", "start", Name},
	}
}

func (m *scm) Definition() string {
	var b strings.Builder
	for _, words := range m.commands() {
		for i, word := range words {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(quoted(word))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// quoted puts quotes around a word with spaces or quotes in it, as programs of Windows read them. No path there ends with a
// backslash or has quotes in it.
func quoted(word string) string {
	if !strings.ContainsAny(word, " \t\"") {
		return word
	}
	return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
}

// exitStatus returns the exit status in an error of [Host.Run], or 0.
func exitStatus(err error) int {
	var failed interface{ ExitCode() int }
	if errors.As(err, &failed) {
		return failed.ExitCode()
	}
	return 0
}

func (m *scm) Check(context.Context) error {
	if m.of.Scope == User {
		return errors.New("Windows has services for the whole system only: use --system, in a terminal that was opened as administrator")
	}
	return nil
}

func (m *scm) Install(ctx context.Context, force bool) ([]string, error) {
	if err := m.Check(ctx); err != nil {
		return nil, err
	}
	if _, err := m.host.Run(ctx, "sc.exe", "query", Name); exitStatus(err) != noService {
		if err != nil {
			return nil, err
		}
		if !force {
			return nil, errors.New("there is a service lmcaddy already: remove it with \"lmcaddy service uninstall\", " +
				"or replace it with --force")
		}
		if err := m.Uninstall(ctx, force); err != nil {
			return nil, err
		}
	}
	for i, words := range m.commands() {
		if _, err := m.host.Run(ctx, words[0], words[1:]...); err != nil {
			if i > 0 && words[1] != "start" { // half a service would be in the way of the next attempt
				_, undone := m.host.Run(ctx, "sc.exe", "delete", Name)
				err = errors.Join(err, undone)
			}
			return nil, fmt.Errorf("%w. Installing a service needs a terminal that was opened as administrator", err)
		}
	}
	return []string{"It starts with Windows, and runs as " + virtualAccount + ", with its state in " + m.of.Home +
		". Commands for it: set LMCADDY_HOME to that folder, in a terminal that was opened as administrator."}, nil
}

// Uninstall needs no force: Windows keeps no file by which one could know who has made a service of that name.
func (m *scm) Uninstall(ctx context.Context, _ bool) error {
	if _, err := m.host.Run(ctx, "sc.exe", "query", Name); err != nil {
		if exitStatus(err) == noService {
			return notInstalled(System)
		}
		return err
	}
	if err := m.powershell(ctx, "Stop-Service -Name "+Name); err != nil { // it waits until the service has ended; sc.exe doesn't
		return err
	}
	_, err := m.host.Run(ctx, "sc.exe", "delete", Name)
	return err
}

func (m *scm) powershell(ctx context.Context, command string) error {
	_, err := m.host.Run(ctx, "powershell.exe", "-NoProfile", "-Command", command)
	return err
}

func (m *scm) Restart(ctx context.Context) error {
	return m.powershell(ctx, "Restart-Service -Name "+Name)
}

func (m *scm) Status(ctx context.Context) (Status, error) {
	s := Status{Scope: System, Manager: "windows", State: "not installed"}
	said, err := m.host.Run(ctx, "sc.exe", "query", Name)
	if exitStatus(err) == noService {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Installed = true
	settings, err := m.host.Run(ctx, "sc.exe", "qc", Name)
	s.Enabled = strings.Contains(settings, "AUTO_START")
	for word := range strings.FieldsSeq(said) { // "STATE : 4  RUNNING"; the first word is translated, and the last isn't
		if slices.Contains(serviceStates, word) {
			s.Running, s.State = word == "RUNNING", strings.ToLower(word)
		}
	}
	return s, err
}

// serviceStates are the states of services, as sc.exe prints them in all languages.
var serviceStates = []string{"STOPPED", "START_PENDING", "STOP_PENDING", "RUNNING", "CONTINUE_PENDING", "PAUSE_PENDING", "PAUSED"}

func (m *scm) Logs(ctx context.Context, lines int, follow bool) error {
	show := "Get-Content -LiteralPath '" + strings.ReplaceAll(m.of.LogFile(), "'", "''") + "' -Tail " + strconv.Itoa(lines)
	if follow {
		show += " -Wait"
	}
	return m.host.Show(ctx, "powershell.exe", "-NoProfile", "-Command", show)
}
