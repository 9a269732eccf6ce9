package server

import (
	"context"
	"encoding/json"
	"fmt"

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
	flags.String("address", "", "")
	_ = flags.MarkHidden("address") // it fails only if there is no such flag
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.Changed("address") {
			fmt.Fprintln(cmd.ErrOrStderr(),
				"--address is no longer needed: ps asks the server that runs on $LMCADDY_HOME, or the one at --host.")
		}
		var answer json.RawMessage
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) error { return c.Get(ctx, "/api/v1/ps", &answer) })
		switch {
		case err != nil:
			return err
		case *asJSON:
			return kit.WriteJSON(cmd.OutOrStdout(), answer)
		}
		var loaded resource.Overview
		if err := json.Unmarshal(answer, &loaded); err != nil {
			return fmt.Errorf("the server's answer can't be read: %w", err)
		}
		return writeOverview(cmd.OutOrStdout(), &loaded, *isWide)
	}
}
