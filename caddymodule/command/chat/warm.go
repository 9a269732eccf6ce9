package chat

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/warm"
)

// DefineWarm defines `lmcaddy warm` with its sub-commands.
func DefineWarm(cmd *cobra.Command) {
	cmd.Long = `Lists and deletes the saved states of conversations, with which a conversation goes on without its prompt being
processed again after its model was unloaded, or the server restarted.

It asks the server that runs on $LMCADDY_HOME, or the one at --host with a token that has the scope models.manage. A
token without the scope admin sees and deletes the states of its own conversations. If no server is running, it works on
the folder "warm" in $LMCADDY_HOME.`
	cmd.Example = "  lmcaddy warm ls\n  lmcaddy warm clear lmcaddy/tinychat"
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
		var list resource.Warm
		err := withWarm(cmd, to, func(ctx context.Context, w states) (err error) {
			list, err = w.Warm(ctx)
			return err
		})
		switch {
		case err != nil:
			return err
		case *asJSON:
			list.States = append([]resource.WarmState{}, list.States...)
			return kit.WriteJSON(cmd.OutOrStdout(), list)
		}
		return writeWarm(cmd.OutOrStdout(), &list)
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
		return withWarm(cmd, to, func(ctx context.Context, w states) error {
			cleared, err := w.ClearWarm(ctx, strings.Join(args, ""))
			switch {
			case err != nil:
				return err
			case *asJSON:
				return kit.WriteJSON(cmd.OutOrStdout(), cleared)
			}
			said := fmt.Sprintf("%d states were deleted (%s).", cleared.Deleted, kit.Size(cleared.SizeBytes))
			switch cleared.Deleted {
			case 0:
				said = "There was nothing to delete."
			case 1:
				said = fmt.Sprintf("One state was deleted (%s).", kit.Size(cleared.SizeBytes))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			return err
		})
	}
	return cmd
}

// states is where states are kept: a server, or the home's folder while no server runs.
type states interface {
	Warm(context.Context) (resource.Warm, error)
	ClearWarm(ctx context.Context, model string) (resource.WarmCleared, error)
}

// withWarm calls do with the states of the server, or with those in the home if no server runs.
func withWarm(cmd *cobra.Command, to *kit.Connection, do func(context.Context, states) error) error {
	return to.TalkOrAtHome(cmd, func(ctx context.Context, c *client.Client) error { return do(ctx, c) },
		func(ctx context.Context, dir home.Dir) error {
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return node.WithWarmOf(dir, log, func(w *warm.Store) error {
				terminal.Printf(cmd.ErrOrStderr(), "No lmcaddy is running on %s: these are the states in %s.\n", dir, dir.Warm())
				return do(ctx, warmAtHome{w})
			})
		})
}

type warmAtHome struct{ store *warm.Store }

func (h warmAtHome) Warm(context.Context) (resource.Warm, error) {
	return manage.DescribeWarm(h.store.List(), h.store.Rates()), nil
}

func (h warmAtHome) ClearWarm(_ context.Context, model string) (resource.WarmCleared, error) {
	n, bytes := h.store.Clear(func(s *warm.Listed) bool { return model == "" || kit.GoesBy(s.Model, model) })
	if n == 0 && model != "" {
		return resource.WarmCleared{}, fmt.Errorf(`there are no states of %s: "lmcaddy warm ls" lists them`, model)
	}
	return resource.WarmCleared{Deleted: n, SizeBytes: bytes}, nil
}

// writeWarm shows states to people, and says of which models none are kept because that doesn't pay.
func writeWarm(out io.Writer, list *resource.Warm) error {
	text := terminal.NewPage(out)
	if len(list.States) == 0 {
		text.WriteString("No states of conversations are saved.\n")
	} else {
		const head = "MODEL\tOWNER\tTOKENS\tSIZE\tCREATED\tLAST USED"
		var total int64
		_ = terminal.WriteTable(text, head, list.States, func(s *resource.WarmState) []string { // to memory
			total += s.SizeBytes
			size, created := kit.Size(s.SizeBytes), kit.Moment(s.Created)
			return []string{s.Model, kit.OrDash(s.Owner), strconv.Itoa(s.Tokens), size, created, kit.Moment(s.LastUsed)}
		})
		terminal.Printf(text, "Together: %s.\n", kit.Size(total))
	}
	for _, r := range list.Rates {
		if r.PaysFrom == nil {
			terminal.Printf(text, "None are kept of %s: to process its prompts again, %.0f tokens in a second, "+
				"is faster than to restore states of %s for a token at %s in a second.\n",
				r.Model, r.PromptRate, kit.Size(int64(r.BytesPerToken)), kit.Size(int64(r.RestoreRate)))
		}
	}
	return text.Flush()
}
