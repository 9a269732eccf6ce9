package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/doctor"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// DefineDoctor defines `lmcaddy doctor`.
func DefineDoctor(cmd *cobra.Command) {
	cmd.Long = `Examines this machine's installation: the home, its disk, the server, the configuration, engines, GPUs, memory,
models, database, tokens, ports, certificates, the sandbox, limits and the clock. Each line says what was found, and where
something is wrong, what to do.

It works with a server running on $LMCADDY_HOME, and without one; then it looks at what "lmcaddy run" would use in this
folder. It changes nothing, and asks nothing of the network. The exit status is 1 if there is a problem.`
	cmd.Example = `  lmcaddy doctor
  lmcaddy doctor --problems
  lmcaddy doctor --json`
	cmd.Args = cobra.NoArgs
	file := cmd.Flags().StringP("config", "c", "", "the Caddyfile to look at while no server is running (default: that of this folder)")
	onlyBad := cmd.Flags().Bool("problems", false, "show only problems and warnings")
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := kit.Interruptible(cmd)
		defer stop()
		subject, closing, err := subjectAtHome(ctx, *file)
		if err != nil {
			return err
		}
		defer closing()
		report := doctor.Examine(ctx, subject)
		if *asJSON {
			err = kit.WriteJSON(cmd.OutOrStdout(), report)
		} else {
			err = writeExamined(cmd.OutOrStdout(), report, *onlyBad)
		}
		if err == nil && report.Problems > 0 {
			err = fmt.Errorf("lmcaddy doctor found %s", kit.Count(report.Problems, "problem"))
		}
		return err
	}
}

func subjectAtHome(ctx context.Context, file string) (*doctor.Subject, func(), error) {
	dir, err := home.FromEnvironment()
	if err != nil && !errors.As(err, new(*home.UnusableError)) { // which is a finding
		return nil, nil, err
	}
	c := client.OnSocket(dir.Socket())
	s := &doctor.Subject{Home: dir}
	var settings settingsOf
	err = c.GetWithin(ctx, statusPatience, "/api/v1/settings", &settings)
	_, isDown := errors.AsType[*client.DownError](err)
	if _, s.IsSilent = errors.AsType[*client.SilentError](err); !isDown && !s.IsSilent {
		s.Server, s.Tokens, s.Error = c, c.Tokens, err
		if settings.Configuration != nil {
			s.Config, s.File = &caddymodule.Described{Configuration: *settings.Configuration}, settings.Configuration.File
			if of, err := describedFile(s.File); s.File != "" && err == nil {
				s.Config.Mistakes = of.Mistakes // which the server has logged
			}
		}
		return s, c.Close, nil
	}
	described, err := describedFile(file)
	if s.Error = err; err == nil {
		s.Config = &described
	}
	if s.File = described.File; s.File == "" && err != nil {
		s.File = home.Absolute(cmp.Or(file, "Caddyfile"))
	}
	if _, err := os.Stat(dir.Database()); err == nil && !s.IsSilent && (s.Config == nil || s.Config.PostgresURL == "") {
		s.Tokens = func(ctx context.Context) (all []resource.Token, err error) {
			err = node.WithStoreOf(ctx, dir, func(st *store.Store) error {
				all, err = atHome{st}.Tokens(ctx)
				return err
			})
			return all, err
		}
	}
	return s, c.Close, nil
}

func writeExamined(out io.Writer, r doctor.Report, onlyBad bool) error {
	colour, columns := terminal.HasColors(out), terminal.Columns(out)
	var text strings.Builder
	for _, f := range r.Findings {
		if onlyBad && f.Status == doctor.OK {
			continue
		}
		begin, end := "", ""
		if colour {
			begin, end = statusColours[f.Status], terminal.Plain
		}
		fmt.Fprintf(&text, "%s%-8s%s %-14s %s\n", begin, f.Status, end, f.Check,
			terminal.Wrap(terminal.Line(kit.InWords(f.Message)), columns, reportIndent))
		if f.Advice != "" {
			fmt.Fprintf(&text, "%*s%s\n", reportIndent, "", terminal.Wrap(terminal.Line(kit.InWords(f.Advice)), columns, reportIndent))
		}
	}
	if r.Problems+r.Warnings == 0 {
		text.WriteString("Everything is all right.\n")
	} else {
		fmt.Fprintf(&text, "\n%s, %s.\n", kit.Count(r.Problems, "problem"), kit.Count(r.Warnings, "warning"))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// reportIndent is the column at which the sentences of a report begin.
const reportIndent = 24

var statusColours = map[doctor.Status]string{doctor.OK: "\x1b[32m", doctor.Warning: "\x1b[33m", doctor.Problem: "\x1b[31m"}
