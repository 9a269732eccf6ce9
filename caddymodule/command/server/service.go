package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/service"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
)

type serviceFlags struct{ system, user bool }

// DefineService defines `lmcaddy service` with its sub-commands.
func DefineService(cmd *cobra.Command) {
	cmd.Long = `Makes lmcaddy a service of the system, which runs in the background and starts by itself: a unit of systemd on
Linux, a job of launchd on macOS, a service of Windows.

With --user the service runs as you, with your home folder (on Linux and macOS; the default unless you are root).
With --system it starts with the machine: on Linux as the user lmcaddy, with its state in /var/lib/lmcaddy and its
configuration in /etc/lmcaddy/Caddyfile; on macOS as you.`
	cmd.Example = `  lmcaddy service install
  lmcaddy service install --system --dry-run
  lmcaddy service status
  lmcaddy service logs --follow`
	of := new(serviceFlags)
	cmd.PersistentFlags().BoolVar(&of.system, "system", false, "the service of the whole system")
	cmd.PersistentFlags().BoolVar(&of.user, "user", false, "the service of this user")
	cmd.AddCommand(serviceInstall(of), serviceUninstall(of), serviceRestart(of), serviceStatus(of), serviceLogs(of))
	for _, sub := range cmd.Commands() {
		sub.Args = cobra.NoArgs
		sub.PreRunE = func(*cobra.Command, []string) error { return of.check() }
	}
}

func (of *serviceFlags) check() error {
	if of.system && of.user {
		return errors.New("--system and --user exclude each other")
	}
	if kit.IsBelowLM {
		return errors.New("this program is a build of Caddy, which runs as Caddy's own service: " +
			"https://caddyserver.com/docs/running says how")
	}
	return nil
}

// defaults returns the host, and the service with its usual paths.
func (of *serviceFlags) defaults() (service.Host, service.Service, error) {
	host, err := service.ThisHost()
	if err != nil {
		return host, service.Service{}, err
	}
	dir, err := home.FromEnvironment()
	if err != nil {
		return host, service.Service{}, err
	}
	scope := host.DefaultScope()
	switch {
	case of.system:
		scope = service.System
	case of.user:
		scope = service.User
	}
	program, err := thisProgram()
	return host, host.Defaults(scope, program, string(dir)), err
}

// manager returns the manager of the chosen service. Without a choice, it is the user's service if that is installed, or else the system's.
func (of *serviceFlags) manager(ctx context.Context) (service.Manager, error) {
	host, s, err := of.defaults()
	if err != nil {
		return nil, err
	}
	chosen, err := service.New(host, s)
	if err != nil || of.system || of.user || s.Scope == service.System {
		return chosen, err
	}
	if status, err := chosen.Status(ctx); err == nil && status.Installed {
		return chosen, nil
	}
	systems, err := service.New(host, host.Defaults(service.System, s.Program, s.Home))
	if err != nil {
		return nil, err
	}
	if status, err := systems.Status(ctx); err == nil && status.Installed {
		return systems, nil
	}
	return chosen, nil
}

// thisProgram is the executable of this process, by its name on PATH if that leads to it: a package manager may keep each version
// in a folder of its own.
func thisProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	named, err := exec.LookPath("lmcaddy")
	if err != nil {
		return program, nil //nolint:nilerr // it isn't on PATH
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return program, nil //nolint:nilerr // then it can't be compared
	}
	if same, err := filepath.EvalSymlinks(named); err == nil && same == real {
		return filepath.Abs(named)
	}
	return program, nil
}

func serviceInstall(of *serviceFlags) *cobra.Command {
	var config, program string
	var dry, force bool
	cmd := &cobra.Command{
		Use: "install", Short: "Installs and starts the service",
		Long: `Installs the service and starts it. It runs "lmcaddy run" with the Caddyfile in --config, which is made if there is none:
$LMCADDY_HOME/Caddyfile for a user's service, /etc/lmcaddy/Caddyfile for the system's on Linux. Environment variables
for it, such as HF_TOKEN=..., can be put into a file "environment" beside that Caddyfile on Linux.`,
		Example: "  lmcaddy service install\n  lmcaddy service install --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, s, err := of.defaults()
			if err != nil {
				return err
			}
			if program != "" {
				s.Program = home.Absolute(program)
			}
			if config != "" {
				s.Config = home.Absolute(config)
				if _, err := os.Stat(s.Config); err != nil && !dry {
					return fmt.Errorf("--config: %w", err)
				}
			}
			manager, err := service.New(host, s)
			if err != nil {
				return err
			}
			if dry {
				_, err := fmt.Fprint(cmd.OutOrStdout(), manager.Definition())
				return err
			}
			ctx, stop := kit.Interruptible(cmd)
			defer stop()
			return installService(ctx, cmd, host, s, manager, force)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "the Caddyfile of the service")
	cmd.Flags().StringVar(&program, "program", "", "the executable that the service starts (default: this one)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print the definition of the service")
	cmd.Flags().BoolVar(&force, "force", false, "replace a definition that lmcaddy has not written")
	return cmd
}

func installService(ctx context.Context, cmd *cobra.Command, host service.Host, s service.Service, manager service.Manager,
	force bool,
) error {
	if err := manager.Check(ctx); err != nil {
		return err
	}
	if s.Scope == service.User || host.OS == "windows" {
		if err := home.Dir(s.Home).Make(); err != nil {
			return err
		}
	}
	made, err := host.WriteCaddyfile(s)
	if err != nil {
		return err
	}
	if made {
		terminal.Println(cmd.ErrOrStderr(), "The configuration is", s.Config)
	}
	if err := checkStart(ctx, s, manager); err != nil {
		return err
	}
	notes, err := manager.Install(ctx, force)
	if err != nil {
		return err
	}
	for _, note := range notes {
		terminal.Println(cmd.ErrOrStderr(), note)
	}
	if entries, err := os.ReadDir(home.Dir(s.Home).Runtimes()); err != nil || len(entries) == 0 {
		as := ""
		if host.OS == "linux" && s.Scope == service.System {
			as = "sudo -u lmcaddy LMCADDY_HOME=" + s.Home + " "
		}
		terminal.Printf(cmd.ErrOrStderr(),
			"Its home has no engine yet, unless one is on PATH. To get one: %slmcaddy runtime get llama.cpp\n", as)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "The service is installed and running.")
	return err
}

// checkStart returns why a service that doesn't run yet couldn't start: the system would only say that it has failed.
func checkStart(ctx context.Context, s service.Service, manager service.Manager) error {
	config, err := ConfigToRun([]string{"--config", s.Config})
	if err != nil {
		return err
	}
	if status, err := manager.Status(ctx); err != nil || status.Running {
		return err
	}
	if s.Scope == service.User { // otherwise the home isn't this user's
		dir, err := home.Dir(s.Home).Real()
		if err != nil {
			return err
		}
		lock, err := node.Reserve(dir)
		if err != nil {
			return err
		}
		if err := lock.Release(); err != nil {
			return err
		}
	}
	return checkAddresses(config)
}

func serviceUninstall(of *serviceFlags) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Stops the service and removes it",
		Long:    "Stops the service and removes its definition. Models, conversations and the Caddyfile stay where they are.",
		Example: "  lmcaddy service uninstall",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return of.do(cmd, func(ctx context.Context, m service.Manager) error {
				if err := m.Uninstall(ctx, force); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "The service is removed.")
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove a definition that lmcaddy has not written")
	return cmd
}

func serviceRestart(of *serviceFlags) *cobra.Command {
	return &cobra.Command{
		Use: "restart", Short: "Applies a changed Caddyfile",
		Long:    "Has the service read its Caddyfile again. On Linux nothing is interrupted; elsewhere the service ends and starts again.",
		Example: "  lmcaddy service restart",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return of.do(cmd, func(ctx context.Context, m service.Manager) error { return m.Restart(ctx) })
		},
	}
}

func (of *serviceFlags) do(cmd *cobra.Command, what func(context.Context, service.Manager) error) error {
	ctx, stop := kit.Interruptible(cmd)
	defer stop()
	m, err := of.manager(ctx)
	if err != nil {
		return err
	}
	return what(ctx, m)
}

func serviceStatus(of *serviceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Shows whether the service is installed and running",
		Long: `Shows whether the service is installed, whether it starts by itself, and whether it runs. The exit status is 1 if it
doesn't run. "lmcaddy status" shows what the server does.`,
		Example: "  lmcaddy service status\n  lmcaddy service status --json",
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return of.do(cmd, func(ctx context.Context, m service.Manager) error {
			s, err := m.Status(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := kit.WriteJSON(cmd.OutOrStdout(), s); err != nil {
					return err
				}
			} else if s.Installed {
				table := terminal.NewTable(cmd.OutOrStdout())
				_, _ = terminal.Printf(table, "Service\t%s, of the %s\nState\t%s\nStarts by itself\t%s\n", s.Manager, s.Scope, s.State,
					map[bool]string{true: "yes", false: "no"}[s.Enabled])
				if s.File != "" {
					_, _ = terminal.Printf(table, "File\t%s\n", s.File)
				}
				if err := table.Flush(); err != nil {
					return err
				}
			}
			switch {
			case !s.Installed:
				return errors.New(`no service of lmcaddy is installed: "lmcaddy service install" makes one`)
			case s.Missing != "":
				return fmt.Errorf("the service starts %s, which doesn't exist any more: "+
					"\"lmcaddy service install\" makes it start this program", s.Missing)
			case !s.Running:
				start := "install"
				if s.Manager == "systemd" { // there may be a package's unit, which install leaves alone
					start = "restart"
				}
				return fmt.Errorf(`the service doesn't run: "lmcaddy service logs" may show why, and "lmcaddy service %s" starts it`, start)
			}
			return nil
		})
	}
	return cmd
}

func serviceLogs(of *serviceFlags) *cobra.Command {
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use: "logs", Aliases: []string{"log"}, Short: "Prints the log of the service",
		Long: `Prints the last lines of the log that the system keeps of the service, also when the server doesn't run. On macOS and
Windows that is logs/lmcaddy.log in the home folder, where the Caddyfile that "service install" makes puts it.`,
		Example: "  lmcaddy service logs\n  lmcaddy service logs --follow",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return fmt.Errorf("--lines %d: give a number that isn't negative", lines)
			}
			return of.do(cmd, func(ctx context.Context, m service.Manager) error {
				err := m.Logs(ctx, lines, follow)
				if ctx.Err() != nil { // Ctrl-C ends --follow
					return nil
				}
				return err
			})
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 100, "how many lines to print")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more lines, until Ctrl-C")
	return cmd
}
