package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
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
		Long:    "Revokes tokens: clients that have them are refused from now on, and their running requests end.",
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

type tokenFlags struct {
	name, expires  string
	scopes, models []string
	limits         map[string]*int // by the API's names
}

// limitFlags are the flags of a token's limits, by the API's names.
var limitFlags = map[string]string{ //nolint:gosec // no credentials
	"requests_per_minute": "requests-per-minute", "tokens_per_day": "tokens-per-day", "concurrent_requests": "concurrent",
}

// newTokenFlags adds the flags of a token to a command. The strings describe the defaults.
func newTokenFlags(cmd *cobra.Command, scoped, models, expires string) *tokenFlags {
	f := &tokenFlags{limits: map[string]*int{}}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "a name that says what the token is for")
	flags.StringSliceVar(&f.scopes, "scopes", nil, "what it may do, separated by commas (default: "+scoped+")")
	flags.StringSliceVar(&f.models, "models", nil,
		"keys of the models that it may use, separated by commas; * matches any characters but a slash, '' means all (default: "+models+")")
	flags.StringVar(&f.expires, "expires", "",
		"when it expires: after a duration, such as 30d or 12h, at a date, such as 2027-01-31, or never (default: "+expires+")")
	_ = cmd.RegisterFlagCompletionFunc("scopes", kit.CompleteOneOf(scopes()...)) // it fails only if there is no such flag
	for name, usage := range map[string]string{
		"requests_per_minute": "maximum requests per minute; 0: unlimited",
		"tokens_per_day":      "maximum input and output tokens per day; 0: unlimited",
		"concurrent_requests": "maximum concurrent requests; 0: unlimited",
	} {
		f.limits[name] = flags.Int(limitFlags[name], 0, usage)
	}
	return f
}

func (f *tokenFlags) edit(cmd *cobra.Command, now time.Time) (client.TokenEdit, error) {
	var e client.TokenEdit
	given := cmd.Flags().Changed
	if given("name") {
		e.Name = &f.name
	}
	if given("scopes") {
		e.Scopes = words(f.scopes)
		for _, s := range *e.Scopes {
			if err := kit.CheckValue("scopes", s, scopes()); err != nil {
				return e, err
			}
		}
	}
	if given("models") {
		e.Models = words(f.models)
	}
	if given("expires") {
		at, err := expiry(f.expires, now)
		if err != nil {
			return e, err
		}
		e.Expires = &at
	}
	for name, flag := range limitFlags {
		if given(flag) {
			if e.Limits == nil {
				e.Limits = map[string]int{}
			}
			e.Limits[name] = *f.limits[name]
		}
	}
	return e, nil
}

// words returns the non-empty words, without spaces around them.
func words(given []string) *[]string {
	some := []string{}
	for _, w := range given {
		if w = strings.TrimSpace(w); w != "" {
			some = append(some, w)
		}
	}
	return &some
}

// expiry returns when a token ends, or nil for never.
func expiry(text string, now time.Time) (*time.Time, error) {
	if text == "never" {
		return nil, nil //nolint:nilnil // no time is one of the answers
	}
	if after, err := caddy.ParseDuration(text); err == nil {
		at := now.Add(after).UTC().Truncate(time.Millisecond)
		return &at, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			at = at.UTC()
			return &at, nil
		}
	}
	return nil, fmt.Errorf("--expires %s: give a duration such as 30d or 12h, a day such as 2027-01-31, or never", text)
}
