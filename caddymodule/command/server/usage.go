package server

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

var usageWays = []string{"model", "token", "day"}

// DefineUsage defines `lmcaddy usage`.
func DefineUsage(cmd *cobra.Command) {
	cmd.Long = `Shows how many requests and tokens were used, by model, by token or by day. Days are in UTC.

It asks the server that runs on $LMCADDY_HOME, or the one at --host. A token without the scope admin sees its own
usage. "lmcaddy token edit" limits the tokens that a token may use in a day.`
	cmd.Example = `  lmcaddy usage
  lmcaddy usage --by token --since 7d
  lmcaddy usage --by day --since 2026-01-01 --json`
	cmd.Args = cobra.NoArgs
	to := kit.NewConnection(cmd)
	by := cmd.Flags().String("by", "model", "what to sum up by: model, token or day")
	since := cmd.Flags().String("since", "30d",
		"the first day: a number of days or weeks, such as 7d or 2w, a day such as 2026-01-31, or today")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/usage has it")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(usageWays, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := kit.CheckValue("by", *by, usageWays); err != nil {
			return err
		}
		query := url.Values{"by": {*by}, "since": {kit.InDays(*since)}}
		if *since == "today" {
			query.Set("since", "1d")
		} else if _, err := time.Parse(time.DateOnly, *since); err == nil {
			query = url.Values{"by": {*by}, "from": {*since}}
		}
		ask := func(ctx context.Context, c *client.Client, into any) error {
			return c.Get(ctx, "/api/v1/usage?"+query.Encode(), into)
		}
		return kit.Show(to, cmd, *asJSON, ask, writeUsage)
	}
}

func writeUsage(out io.Writer, used *resource.Usage) error {
	period := "from " + used.From + " to " + used.To
	if used.From == used.To {
		period = "on " + used.To
	}
	if len(used.Usage) == 0 {
		_, err := terminal.Printf(out, "Nothing was used %s.\n", period)
		return err
	}
	header := []string{strings.ToUpper(used.By), "REQUESTS", "TOKENS IN", "TOKENS OUT"}
	if used.By == "token" {
		header = slices.Concat(header[:1], []string{"NAME"}, header[1:], []string{"TODAY", "A DAY"})
	}
	err := terminal.WriteTable(out, strings.Join(header, "\t"), used.Usage, func(r *resource.UsageRow) []string {
		return usageCells(used.By, r)
	})
	if err != nil {
		return err
	}
	t := used.Total
	_, err = terminal.Printf(out, "Together: %s, %s tokens in and %s out, %s.\n", kit.Count(int(t.Requests), "request"),
		humanize.Comma(t.TokensIn), humanize.Comma(t.TokensOut), period)
	return err
}

func usageCells(by string, r *resource.UsageRow) []string {
	counts := []string{humanize.Comma(r.Requests), humanize.Comma(r.TokensIn), humanize.Comma(r.TokensOut)}
	if by != "token" {
		return append([]string{r.Day + r.Model}, counts...)
	}
	name, owner, today, limit := r.Name, "", int64(0), "no limit"
	if r.Owner != nil {
		owner = *r.Owner
	}
	if owner == "" {
		name = "(no token)"
	}
	if r.TokensToday != nil {
		today = *r.TokensToday
	}
	if r.PerDay > 0 {
		limit = humanize.Comma(int64(r.PerDay))
	}
	return slices.Concat([]string{kit.OrDash(owner), kit.OrDash(name)}, counts, []string{humanize.Comma(today), limit})
}
