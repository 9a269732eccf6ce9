package server

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// DefinePS defines `lmcaddy ps`.
func DefinePS(cmd *cobra.Command) {
	cmd.Long = `Shows the models that are loaded, loading or to be restarted, the waiting requests, and the memory in use.

It asks the server that runs on $LMCADDY_HOME, or the one at --host with a token that has the scope models.read. EXPIRES
counts from the end of an instance's last request; an instance in use has none.`
	cmd.Example = "  lmcaddy ps\n  lmcaddy ps --wide\n  lmcaddy ps --json"
	cmd.Args = cobra.NoArgs
	to := kit.NewConnection(cmd)
	flags := cmd.Flags()
	asJSON := flags.Bool("json", false, "print JSON, as GET /api/v1/ps has it")
	isWide := flags.BoolP("wide", "w", false, "show when each was loaded, the memory and the id of its process, and its engine, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ask := func(ctx context.Context, c *client.Client, into any) error { return c.Get(ctx, "/api/v1/ps", into) }
		return kit.Show(to, cmd, *asJSON, ask, func(out io.Writer, o *resource.Overview) error { return writeOverview(out, o, *isWide) })
	}
}
