package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

func completeRuntimes(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if store, err := openRuntimes(cmd); err == nil && len(args) == 0 {
		list, _ := store.List() // without a list, nothing is completed
		for _, r := range list {
			if r.Source != runtimes.OnPath {
				names = append(names, r.Name)
			}
		}
	}
	return kit.BeginningWith(typed, names), cobra.ShellCompDirectiveNoFileComp
}

const howToGet = `No engine was found. Get one with "lmcaddy runtime get llama.cpp", or for MLX models with "lmcaddy runtime get mlx-lm".`

const gettable = `The engines are:
  llama.cpp   llama-server, which runs models in the GGUF format
  mlx-lm      mlx_lm.server, which runs models in the MLX format, on Macs with
              an Apple processor and on Linux`

// DefineRuntime defines `lmcaddy runtime` with its sub-commands. They work on the home folder, with a server running or not.
func DefineRuntime(cmd *cobra.Command) {
	cmd.Long = `Finds, fetches and selects the engines that run models.

An engine is looked for where the Caddyfile says, then among the runtimes in
$LMCADDY_HOME/runtimes (the selected one of that engine), then on PATH.

` + gettable
	cmd.Example = "  lmcaddy runtime get llama.cpp\n  lmcaddy runtime ls"
	cmd.AddCommand(runtimeList(), runtimeGet(), runtimeSelect(), runtimeRemove())
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
		Use:     "ls",
		Short:   "Lists the installed runtimes, and the engines on PATH",
		Long:    "Lists the runtimes in $LMCADDY_HOME/runtimes, and the engines on PATH. The one with * runs the models of its engine.",
		Example: "  lmcaddy runtime ls\n  lmcaddy runtime ls --json",
		Args:    cobra.NoArgs,
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
				return kit.WriteJSON(cmd.OutOrStdout(), append([]runtimes.Runtime{}, list...)) // an empty array, not null
			}
			return writeRuntimes(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func writeRuntimes(out io.Writer, list []runtimes.Runtime) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, kit.InWords(howToGet))
		return err
	}
	table := terminal.NewTable(out)
	table.CutFirst(5, 4) // PATH, then FROM: NAME is what people type
	_, _ = fmt.Fprintln(table, "SELECTED\tNAME\tVERSION\tVARIANT\tFROM\tPATH")
	for _, r := range list {
		selected, from := "", r.Origin
		if r.Selected {
			selected = "*"
		}
		if r.Source == runtimes.OnPath {
			from = "PATH"
		}
		_, _ = terminal.Printf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", selected, kit.OrDash(r.Name), kit.OrDash(r.Version),
			kit.OrDash(r.Variant), kit.OrDash(from), commandOf(r))
	}
	return table.Flush()
}

func commandOf(r runtimes.Runtime) string {
	return strings.Join(append([]string{r.Path}, r.Args...), " ")
}

func runtimeGet() *cobra.Command {
	var options runtimes.GetOptions
	var ifMissing, asJSON bool
	cmd := &cobra.Command{
		Use:   "get llama.cpp | mlx-lm",
		Short: "Downloads an engine",
		Long: `Downloads an engine to $LMCADDY_HOME/runtimes, and selects it if none of its kind is selected.

llama.cpp comes from the project's official release for this platform, checked against its
SHA-256 checksum. If a Debian-family system can't reach that, it comes from the packages of Debian
testing or unstable, which are unpacked there: that needs no root and doesn't change the
system's libraries.

The variant is the best one that fits the hardware and finds its GPU: cuda, then vulkan, then cpu
(metal on Macs). One that you name is installed even if it finds no GPU yet. Debian's packages
have no metal, but hip (ROCm), for AMD's GPUs, and blas, for the processor. Those for cuda need
CUDA's libraries, which come from Debian's non-free under NVIDIA's license.

mlx-lm is a Python package. It is installed from PyPI, or the index that uv or pip is configured to
use, in a virtual environment of its own: no other Python package is used or changed. That needs uv,
or else Python 3.10 or later with its module venv.

` + gettable,
		Example: "  lmcaddy runtime get llama.cpp\n  lmcaddy runtime get llama.cpp --variant vulkan\n  lmcaddy runtime get mlx-lm",
		Args:    gettableEngine,
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Engine = args[0]
			return getRuntime(cmd, options, ifMissing, asJSON)
		},
	}
	cmd.ValidArgs = []string{runtimes.LlamaCpp, runtimes.MLXLM}
	flags := cmd.Flags()
	flags.StringVar(&options.Variant, "variant", "",
		"cpu, cuda, metal, or vulkan, hip or blas for llama.cpp (default: what fits the hardware)")
	flags.StringVar(&options.Version, "version", "", "of llama.cpp, a build like b11669 or a release like v0.7.0 (default: "+
		"the latest release); of mlx-lm, a version like 0.31.3 (the default)")
	// it fails only if there is no such flag
	_ = cmd.RegisterFlagCompletionFunc("variant", cobra.FixedCompletions(variantsOf(runtimes.LlamaCpp), cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&ifMissing, "if-missing", false, "do nothing if the engine is already installed or on PATH")
	flags.StringVar(&options.Releases, "releases", "", "address of a mirror of the releases API of llama.cpp")
	flags.BoolVar(&asJSON, "json", false, "print the runtime as JSON")
	flags.StringVar(&options.Index, "index", "", "address of a Python package index for mlx-lm")
	return cmd
}

// gettableEngine checks that the argument is an engine that can be downloaded.
func gettableEngine(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name the engine to download. " + gettable)
	case len(args) > 1:
		return errors.New("name one engine to download. " + gettable)
	case args[0] != runtimes.LlamaCpp && args[0] != runtimes.MLXLM:
		return fmt.Errorf("there is no engine %q to download. %s", args[0], gettable)
	}
	return nil
}

func variantsOf(engine string) []string {
	if engine == runtimes.MLXLM {
		return []string{"cpu", "cuda", "metal"}
	}
	return []string{"blas", "cpu", "cuda", "hip", "metal", "vulkan"}
}

func getRuntime(cmd *cobra.Command, options runtimes.GetOptions, ifMissing, asJSON bool) error {
	// A release of llama.cpp may have other variants than the usual ones. They are known later.
	if known := variantsOf(options.Engine); options.Variant != "" &&
		(options.Engine != runtimes.LlamaCpp || nearest.Of(options.Variant, known) != nil) {
		if err := kit.CheckValue("variant", options.Variant, known); err != nil {
			return err
		}
	}
	store, err := openRuntimes(cmd)
	if err != nil {
		return err
	}
	if ifMissing {
		if found, err := store.Find(options.Engine, ""); err == nil {
			if asJSON {
				return kit.WriteJSON(cmd.OutOrStdout(), found)
			}
			return nil
		}
	}
	ctx, stop := kit.Interruptible(cmd)
	defer stop()
	line := terminal.NewProgress(cmd.ErrOrStderr())
	options.Progress = func(p runtimes.Progress) { showProgress(line, p) }
	got, err := store.Get(ctx, options)
	line.End()
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted: nothing was installed")
	case err != nil:
		return err
	case asJSON:
		return kit.WriteJSON(cmd.OutOrStdout(), got)
	}
	text := got.Name + " is installed"
	if got.Already {
		text = got.Name + " is already installed, nothing was replaced"
	}
	if got.Selected {
		text += "; it is selected"
	} else {
		text += kit.InWords(fmt.Sprintf("; another is selected, \"lmcaddy runtime select %s\" selects this one", got.Name))
	}
	_, err = terminal.Printf(cmd.OutOrStdout(), "%s.\n%s\n", text, commandOf(got))
	return err
}

func runtimeSelect() *cobra.Command {
	return runtimeChange(&cobra.Command{
		Use: "select NAME", Short: "Selects the runtime to use for its engine",
		Long:    "Selects the runtime that runs the models of its engine, from the next load on.",
		Example: "  lmcaddy runtime select llama.cpp-b11669-cpu",
	}, "is selected", func(s *runtimes.Store, r *runtimes.Runtime) error {
		r.Selected = true
		return s.Select(r.Name)
	})
}

func runtimeRemove() *cobra.Command {
	return runtimeChange(&cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Deletes an installed runtime",
		Long:    "Deletes a runtime from $LMCADDY_HOME/runtimes.",
		Example: "  lmcaddy runtime remove llama.cpp-b11669-cpu",
	}, "is removed", func(s *runtimes.Store, r *runtimes.Runtime) error {
		r.Selected = false
		return s.Remove(r.Name)
	})
}

// orMeant returns the error about a runtime, or if there is none of that name, one that names the nearest.
func orMeant(name string, list []runtimes.Runtime, err error) error {
	var names []string
	for _, r := range list {
		if r.Name == name {
			return err
		}
		if r.Source != runtimes.OnPath {
			names = append(names, r.Name)
		}
	}
	if near := nearest.DidYouMean(name, names); near != "" {
		return fmt.Errorf("there is no runtime %s%s", name, near)
	}
	return err
}

// runtimeChange makes a command call do with the runtime that its argument names, and print what was done.
func runtimeChange(cmd *cobra.Command, done string, do func(*runtimes.Store, *runtimes.Runtime) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = completeRuntimes
	asJSON := cmd.Flags().Bool("json", false, "print the runtime as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, err := openRuntimes(cmd)
		if err != nil {
			return err
		}
		list, _ := store.List() // without a list, there is neither a description nor a suggestion
		changed := runtimes.Runtime{Name: args[0]}
		for _, r := range list {
			if r.Name == args[0] {
				changed = r
			}
		}
		if err := do(store, &changed); err != nil {
			return orMeant(args[0], list, err)
		}
		if *asJSON {
			return kit.WriteJSON(cmd.OutOrStdout(), changed)
		}
		_, err = terminal.Printf(cmd.OutOrStdout(), "%s %s.\n", args[0], done)
		return err
	}
	return cmd
}

func showProgress(line *terminal.Progress, p runtimes.Progress) {
	text := p.Doing
	done := humanize.Bytes(uint64(max(0, p.Done)))
	switch {
	case p.Total > 0:
		text += fmt.Sprintf("  %s of %s, %.0f%%", done, humanize.Bytes(uint64(p.Total)), p.Percent)
	case p.Done > 0:
		text += "  " + done
	case p.Percent > 0:
		text += fmt.Sprintf("  %.0f%%", p.Percent)
	}
	line.Update(p.Doing, "%s", text)
}
