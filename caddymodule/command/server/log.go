package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

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

// logPrinter prints records of the log as lines for people.
type logPrinter struct {
	out    io.Writer
	colour bool
	now    func() time.Time
}

// levelColours are what a terminal shows of a level's records in another colour.
var levelColours = map[string]string{"debug": terminal.Dim, "warn": "\x1b[33m", "error": "\x1b[31m"}

// show prints a record: its time, level, model, message and fields.
func (p *logPrinter) show(r resource.LogRecord) error {
	var line bytes.Buffer
	begin, end := "", ""
	if p.colour {
		if begin = levelColours[r.Level]; begin != "" {
			end = terminal.Plain
		}
	}
	fmt.Fprintf(&line, "%s %s%-5s%s ", p.time(r.Time), begin, strings.ToUpper(r.Level), end)
	fields := gjson.ParseBytes(r.Fields)
	if about := cmp.Or(fields.Get("instance").Str, fields.Get("model").Str); about != "" {
		line.WriteString(shown(about) + "  ")
	}
	output := fields.Get("line")
	message := shown(r.Message)
	if output.Exists() {
		message += ": " + terminal.Line(output.Str)
	}
	if r.Level == "debug" {
		message = begin + message + end
	}
	line.WriteString(message)
	fields.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "instance", "line", "part":
			return true
		case "model":
			if fields.Get("instance").Str == "" {
				return true
			}
		}
		text := value.Raw
		if value.Type == gjson.String {
			text = shown(value.Str)
			if text == "" || strings.ContainsAny(text, " \t=") {
				text = strconv.Quote(value.Str)
			}
		}
		line.WriteString("  " + shown(name.Str) + "=" + text)
		return true
	})
	line.WriteByte('\n')
	_, err := p.out.Write(line.Bytes())
	return err
}

// time is the time of the day, with the date unless it is today's.
func (p *logPrinter) time(at *resource.Time) string {
	if at == nil {
		return "--:--:--"
	}
	local := at.Local()
	if local.Format(time.DateOnly) == p.now().Local().Format(time.DateOnly) {
		return local.Format("15:04:05.000")
	}
	return local.Format("2006-01-02 15:04:05.000")
}

// shown is a text on one line; one with characters that could control a terminal is quoted.
func shown(text string) string {
	if terminal.Line(text) == text {
		return text
	}
	return strconv.Quote(text)
}
