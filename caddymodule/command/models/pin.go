package models

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefinePin defines `lmcaddy pin`.
func DefinePin(cmd *cobra.Command) {
	definePinning(cmd, "is pinned", true)
	cmd.Long = `Keeps a loaded model in memory: it isn't unloaded for other models, nor after idle_ttl. It stays pinned until it is
unloaded, or until "lmcaddy unpin". The option pin of the Caddyfile pins a model whenever it is loaded.`
	cmd.Example = "  lmcaddy pin lmcaddy/tinychat"
}

// DefineUnpin defines `lmcaddy unpin`.
func DefineUnpin(cmd *cobra.Command) {
	definePinning(cmd, "is no longer pinned", false)
	cmd.Long = `Lets a model be unloaded again that "lmcaddy pin" has pinned.`
	cmd.Example = "  lmcaddy unpin lmcaddy/tinychat"
}

func definePinning(cmd *cobra.Command, done string, pinned bool) {
	cmd.Args = cobra.ExactArgs(1)
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = to.CompleteWith(kit.LoadedNames, 1)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as POST /api/v1/models/pin has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ask := func(ctx context.Context, c *client.Client, into any) error {
			name, err := kit.FullName(ctx, cmd, c, args[0])
			if err != nil {
				return err
			}
			return c.Pin(ctx, name, pinned, into)
		}
		return kit.Show(to, cmd, *asJSON, ask, func(out io.Writer, p *resource.Pinned) error {
			_, err := terminal.Printf(out, "%s %s.\n", strings.Join(p.Instances, ", "), done)
			return err
		})
	}
}
