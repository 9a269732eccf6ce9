package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// DefineToken defines `lmcaddy token` with its sub-commands.
func DefineToken(cmd *cobra.Command) {
	cmd.Long = `Creates, lists, changes and revokes the tokens with which people and programs use sites with lm_auth.

It asks the server that runs on $LMCADDY_HOME, or the one at --host with a token that has the scope admin. If none is
running, it works on the database in $LMCADDY_HOME; with "store postgres" in the Caddyfile, the server has to run.

Scopes: ` + strings.Join(scopes(), ", ")
	cmd.Example = "  lmcaddy token create --name laptop\n  lmcaddy token ls"
	cmd.AddCommand(tokenCreate(), tokenList(), tokenEdit(), tokenRevoke())
}

func scopes() []string {
	all := make([]string, len(access.Scopes))
	for i, s := range access.Scopes {
		all[i] = string(s)
	}
	return all
}

func tokenCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create --name NAME", Short: "Creates a token, and prints only it to standard output", Args: cobra.NoArgs,
		Long: `Creates a token, and prints only it to standard output. Only a hash is stored, so it can't be shown again.`,
		Example: `  lmcaddy token create --name laptop
  lmcaddy token create --name guests --scopes inference --models 'qwen/*' --expires 30d --requests-per-minute 20`,
	}
	to := kit.NewConnection(cmd)
	flags := newTokenFlags(cmd, "all but admin", "all", "never")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as POST /api/v1/tokens has it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		edit, err := flags.edit(cmd, time.Now())
		if err == nil && edit.Name == nil {
			err = errors.New("a token needs a name that says what it is for: --name laptop")
		}
		if err != nil {
			return err
		}
		create := func(ctx context.Context, t tokens) (resource.Token, error) { return t.CreateToken(ctx, edit) }
		return showTokens(cmd, to, *asJSON, create, func(out io.Writer, made resource.Token) error {
			_, err := fmt.Fprintln(out, made.Secret)
			return err
		})
	}
	return cmd
}

func tokenList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "Lists the tokens, without the secrets", Args: cobra.NoArgs,
		Long: "Lists the tokens, without the secrets, which nobody can show again: their names, rights and limits, " +
			"and when they were last used.",
		Example: "  lmcaddy token ls\n  lmcaddy token ls --json",
	}
	to := kit.NewConnection(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as GET /api/v1/tokens has it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		list := func(ctx context.Context, t tokens) (map[string][]resource.Token, error) {
			all, err := t.Tokens(ctx)
			return map[string][]resource.Token{"tokens": append([]resource.Token{}, all...)}, err
		}
		return showTokens(cmd, to, *asJSON, list, func(out io.Writer, list map[string][]resource.Token) error {
			return writeTokens(out, list["tokens"])
		})
	}
	return cmd
}

func tokenEdit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit ID", Short: "Changes a token; flags that aren't given leave it unchanged", Args: cobra.ExactArgs(1),
		Long: "Changes a token. Flags that aren't given leave it unchanged. " +
			"Its requests that are no longer allowed end within a second.",
		Example: "  lmcaddy token edit k3V9dPq2 --scopes inference --expires never --models '' --tokens-per-day 0",
	}
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = to.CompleteWith(kit.TokenNames, 1)
	flags := newTokenFlags(cmd, "as before", "as before", "as before")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, as PATCH /api/v1/tokens/{id} has it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		edit, err := flags.edit(cmd, time.Now())
		if err != nil {
			return err
		}
		change := func(ctx context.Context, t tokens) (resource.Token, error) { return t.EditToken(ctx, args[0], edit) }
		return showTokens(cmd, to, *asJSON, change, func(out io.Writer, now resource.Token) error {
			return writeTokens(out, []resource.Token{now})
		})
	}
	return cmd
}

func tokenRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID...", Aliases: []string{"rm"}, Short: "Revokes tokens, at once", Args: cobra.MinimumNArgs(1),
		Long:    "Revokes tokens: whoever has them is refused from now on, and their running requests end.",
		Example: "  lmcaddy token revoke k3V9dPq2",
	}
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = to.CompleteWith(kit.TokenNames, 0)
	asJSON := cmd.Flags().Bool("json", false, "print JSON: {\"revoked\": [the ids]}")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		revoke := func(ctx context.Context, t tokens) (map[string][]string, error) {
			for _, id := range args {
				if err := t.RevokeToken(ctx, id); err != nil {
					return nil, err
				}
				if !*asJSON {
					terminal.Println(cmd.OutOrStdout(), id+" is revoked.")
				}
			}
			return map[string][]string{"revoked": args}, nil
		}
		return showTokens(cmd, to, *asJSON, revoke, func(io.Writer, map[string][]string) error { return nil })
	}
	return cmd
}

func writeTokens(out io.Writer, all []resource.Token) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, kit.InWords(`There are no tokens. "lmcaddy token create --name NAME" makes one.`))
		return err
	}
	const head = "ID\tNAME\tSCOPES\tMODELS\tLIMITS\tEXPIRES\tLAST USED"
	return terminal.WriteTable(out, head, all, func(t *resource.Token) []string {
		models, limits := cmp.Or(strings.Join(t.Models, ","), "all"), kit.OrDash(limitsInWords(t.Limits))
		return []string{t.ID, t.Name, strings.Join(t.Scopes, ","), models, limits, kit.Moment(t.Expires), kit.Moment(t.LastUsed)}
	})
}

func limitsInWords(l resource.TokenLimits) string {
	var words []string
	for _, limit := range []struct {
		n    int
		unit string
	}{{l.RequestsPerMinute, "requests/min"}, {l.TokensPerDay, "tokens/day"}, {l.Concurrent, "at a time"}} {
		if limit.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", limit.n, limit.unit))
		}
	}
	return strings.Join(words, ", ")
}
