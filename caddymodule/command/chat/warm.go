package chat

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineWarm defines `lmcaddy warm` with its sub-commands.
func DefineWarm(cmd *cobra.Command) {
	cmd.Long = `Lists and deletes the saved states of conversations, with which a conversation goes on without its prompt being
processed again after its model was unloaded, or the server restarted.

It asks the server that runs on $LMCADDY_HOME, or the one at --host with a token that has the scope models.manage. A
token without the scope admin sees and deletes the states of its own conversations.`
	cmd.Example = "  lmcaddy warm ls\n  lmcaddy warm clear lmcaddy/tinychat"
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(warmList(), warmClear())
}

func warmList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "Lists the saved states of conversations", Args: cobra.NoArgs,
		Long:    "Lists the saved states of conversations, and what they take of the disk.",
		Example: "  lmcaddy warm ls\n  lmcaddy warm ls --json",
	}
	to := kit.NewConnection(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/warm has it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ask := func(ctx context.Context, c *client.Client, into any) error { return c.Get(ctx, "/api/v1/warm", into) }
		return kit.Show(to, cmd, *asJSON, ask, writeWarm)
	}
	return cmd
}

func warmClear() *cobra.Command {
	cmd := &cobra.Command{
		Use: "clear [MODEL]", Aliases: []string{"rm"}, Short: "Deletes the saved states of a model's conversations, or of all",
		Long: `Deletes the saved states of a model's conversations, or of all. The conversations themselves stay: the next request for
one has its prompt processed again. Loaded models go on saving; "warm off" in the Caddyfile ends that.`,
		Example: "  lmcaddy warm clear lmcaddy/tinychat\n  lmcaddy warm clear",
		Args:    cobra.MaximumNArgs(1),
	}
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = models.CompleteModels(to)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as DELETE /api/v1/warm has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ask := func(ctx context.Context, c *client.Client, into any) error {
			query := ""
			if len(args) > 0 {
				query = "?model=" + url.QueryEscape(args[0])
			}
			return c.Delete(ctx, "/api/v1/warm"+query, into)
		}
		return kit.Show(to, cmd, *asJSON, ask, writeCleared)
	}
	return cmd
}

// writeWarm shows states to people, and says of which models none are kept because that doesn't pay.
func writeWarm(out io.Writer, list *resource.Warm) error {
	if err := writeStates(out, list.States); err != nil {
		return err
	}
	for _, r := range list.Rates {
		if r.PaysFrom != nil {
			continue
		}
		_, err := terminal.Printf(out, "None are kept of %s: to process its prompts again, %.0f tokens in a second, "+
			"is faster than to restore states of %s for a token at %s in a second.\n",
			r.Model, r.PromptRate, kit.Size(int64(r.BytesPerToken)), kit.Size(int64(r.RestoreRate)))
		if err != nil {
			return err
		}
	}
	return nil
}

func writeStates(out io.Writer, all []resource.WarmState) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "No states of conversations are saved.")
		return err
	}
	table := terminal.NewTable(out)
	_, _ = fmt.Fprintln(table, "MODEL\tOWNER\tTOKENS\tSIZE\tCREATED\tLAST USED")
	var total int64
	for i := range all {
		s := &all[i]
		total += s.SizeBytes
		table.Row(s.Model, kit.OrDash(s.Owner), strconv.Itoa(s.Tokens), kit.Size(s.SizeBytes), kit.Moment(s.Created),
			kit.Moment(s.LastUsed))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := terminal.Printf(out, "Together: %s.\n", kit.Size(total))
	return err
}

func writeCleared(out io.Writer, c *resource.WarmCleared) error {
	said := "There was nothing to delete."
	switch {
	case c.Deleted == 1:
		said = fmt.Sprintf("One state was deleted (%s).", kit.Size(c.SizeBytes))
	case c.Deleted > 1:
		said = fmt.Sprintf("%d states were deleted (%s).", c.Deleted, kit.Size(c.SizeBytes))
	}
	_, err := fmt.Fprintln(out, said)
	return err
}
