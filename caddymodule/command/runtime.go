package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

const howToGet = `No llama-server was found. Get one with "lmcaddy runtime get llama.cpp".`

// defineRuntime defines `lmcaddy runtime` with its sub-commands. They work on the home folder, with a server running or not.
func defineRuntime(cmd *cobra.Command) {
	cmd.Long = `Finds, fetches and selects the engine (llama-server) that runs models.

The engine is looked for at the path that the Caddyfile gives, then among the runtimes in
$LMCADDY_HOME/runtimes (the selected one), then on PATH.`
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(runtimeList(), runtimeGet(), runtimeSelect(), runtimeRemove())
	for _, sub := range cmd.Commands() {
		sub.SilenceUsage = true
	}
}

func openRuntimes(cmd *cobra.Command) (*runtimes.Store, error) {
	dir, err := home.FromEnvironment()
	if err != nil {
		return nil, err
	}
	warnings := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	return runtimes.Open(dir.Runtimes(), warnings), nil
}

func runtimeList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "Lists the installed runtimes, and the llama-server on PATH",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := openRuntimes(cmd)
			if err != nil {
				return err
			}
			list, err := store.List()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), append([]runtimes.Runtime{}, list...)) // an empty array, not null
			}
			return writeRuntimes(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func writeRuntimes(out io.Writer, list []runtimes.Runtime) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, inWords(howToGet))
		return err
	}
	table := newTable(out)
	_, _ = fmt.Fprintln(table, "SELECTED\tNAME\tVERSION\tVARIANT\tFROM\tPATH")
	for _, r := range list {
		selected, from := "", r.Origin
		if r.Selected {
			selected = "*"
		}
		if r.Source == runtimes.OnPath {
			from = "PATH"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", selected, orDash(r.Name), orDash(r.Version), orDash(r.Variant), orDash(from), r.Path)
	}
	return table.Flush()
}

func runtimeGet() *cobra.Command {
	var options runtimes.GetOptions
	var ifMissing bool
	cmd := &cobra.Command{
		Use:   "get llama.cpp",
		Short: "Downloads an engine: the official release, or a Debian-family system's packages",
		Long: `Downloads an engine to $LMCADDY_HOME/runtimes, and selects it if none is selected.

It comes from the project's official release for this platform, checked against its SHA-256
checksum. If a Debian-family system can't reach that, it comes from the distribution's
own packages, which are unpacked there: that needs no root and doesn't change the
system's libraries.`,
		Example: "  lmcaddy runtime get llama.cpp\n  lmcaddy runtime get llama.cpp --variant vulkan",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Engine = args[0]
			return getRuntime(cmd, options, ifMissing)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Variant, "variant", "", "cpu, vulkan, cuda or metal (default: what fits the hardware)")
	flags.StringVar(&options.Version, "version", "", "a build like b11669 or a release like v0.7.0 (default: the latest release)")
	flags.BoolVar(&ifMissing, "if-missing", false, "do nothing if a llama-server is already installed or on PATH")
	flags.StringVar(&options.Releases, "releases", "", "address of a mirror of the project's releases API")
	return cmd
}

func getRuntime(cmd *cobra.Command, options runtimes.GetOptions, ifMissing bool) error {
	switch options.Engine {
	case runtimes.LlamaCpp:
	default:
		return fmt.Errorf("there is no engine %q to download; the only one is %s, which runs GGUF models", options.Engine, runtimes.LlamaCpp)
	}
	store, err := openRuntimes(cmd)
	if err != nil {
		return err
	}
	if ifMissing {
		if _, err := store.Find(""); err == nil {
			return nil
		}
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	line := newProgressLine(cmd.ErrOrStderr())
	options.Progress = line.show
	got, err := store.Get(ctx, options)
	line.end()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted: nothing was installed")
		}
		return err
	}
	return describeGot(cmd.OutOrStdout(), got)
}

func describeGot(out io.Writer, got runtimes.Runtime) error {
	text := got.Name + " is installed"
	if got.Already {
		text = got.Name + " is already installed, nothing was replaced"
	}
	if got.Selected {
		text += "; it is selected"
	} else {
		text += inWords(fmt.Sprintf("; another is selected, \"lmcaddy runtime select %s\" selects this one", got.Name))
	}
	_, err := fmt.Fprintf(out, "%s.\n%s\n", text, got.Path)
	return err
}

func runtimeSelect() *cobra.Command {
	cmd := &cobra.Command{Use: "select NAME", Short: "Selects the runtime to use"}
	changeRuntime(cmd, (*runtimes.Store).Select, "is selected")
	return cmd
}

func runtimeRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Aliases: []string{"rm"}, Short: "Deletes an installed runtime"}
	changeRuntime(cmd, (*runtimes.Store).Remove, "is removed")
	return cmd
}

// changeRuntime makes a command call do with the name in its argument, and print what was done.
func changeRuntime(cmd *cobra.Command, do func(*runtimes.Store, string) error, done string) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, err := openRuntimes(cmd)
		if err != nil {
			return err
		}
		if err := do(store, args[0]); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s.\n", args[0], done)
		return err
	}
}
