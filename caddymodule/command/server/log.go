package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

var logLevels = []string{"debug", "info", "warn", "error"}

// logStream is the argument with which lms follows the log.
const logStream = "stream"

// DefineLog defines `lmcaddy log`.
func DefineLog(cmd *cobra.Command) {
	cmd.Long = `Shows the newest records of the running server's log: what it did with models and engines, and what went wrong.
With --follow, it shows what is added as well, until Ctrl-C; "lmcaddy log stream" is the same, as in lms.

The server keeps some thousand records in memory, also those that its configuration doesn't log, such as what
engines write. They are gone when it ends. Every response has its request's id in the header X-Request-Id.`
	cmd.Example = `  lmcaddy log
  lmcaddy log --level warn --since 24h
  lmcaddy log --follow --model lmcaddy/tinychat --engine
  lmcaddy log --request req_i7yfooskggklw6hl5ozolwrcof`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if slices.Equal(args, []string{logStream}) {
			return nil
		}
		return cobra.NoArgs(cmd, args)
	}
	to := kit.NewConnection(cmd)
	var q client.LogQuery
	flags := cmd.Flags()
	follow := flags.BoolP("follow", "f", false, "show what is added, until Ctrl-C")
	flags.IntVarP(&q.Limit, "lines", "n", 100, "how many records to begin with")
	flags.StringVar(&q.Model, "model", "", "only what is about this model")
	flags.StringVar(&q.Request, "request", "", "only what is about the request with this id, at all levels")
	flags.StringVar(&q.Level, "level", "info", "the least level: debug, info, warn or error")
	since := flags.Duration("since", 0, "only what is newer, such as 10m or 24h")
	flags.BoolVar(&q.Engine, "engine", false, "also what engines write")
	asJSON := flags.Bool("json", false, "print JSON; with --follow, one record per line")
	// it fails only if there is no such flag
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := kit.CheckValue("level", q.Level, logLevels); err != nil {
			return err
		}
		if *since < 0 || q.Limit < 0 {
			return errors.New("--since and --lines must not be negative")
		}
		if *since > 0 {
			q.Since = time.Now().Add(-*since)
		}
		if q.Request != "" && !cmd.Flags().Changed("level") {
			q.Level = "debug" // there is little about it otherwise
		}
		print := &logPrinter{out: cmd.OutOrStdout(), colour: terminal.HasColors(cmd.OutOrStdout()), now: time.Now}
		return to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			if *follow || len(args) > 0 {
				return followLog(ctx, cmd, c, q, print, *asJSON)
			}
			logs, err := c.Logs(ctx, q)
			if err == nil && *asJSON {
				return kit.WriteJSON(cmd.OutOrStdout(), logs)
			}
			for _, r := range logs.Records {
				err = cmp.Or(err, print.show(r))
			}
			return err
		})
	}
}

// followLog prints records until the user interrupts the command, or the server ends.
func followLog(ctx context.Context, cmd *cobra.Command, c *client.Client, q client.LogQuery, print *logPrinter, asJSON bool) error {
	lines := json.NewEncoder(cmd.OutOrStdout())
	err := c.FollowLogs(ctx, q, func(r resource.LogRecord) error {
		if asJSON {
			return lines.Encode(r)
		}
		return print.show(r)
	})
	switch {
	case ctx.Err() != nil:
		return nil // the user has seen enough
	case err == nil, errors.Is(err, client.ErrCut):
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "The server has ended.")
		return nil
	}
	return err
}
