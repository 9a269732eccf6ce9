package kit

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
)

// completionPatience bounds how long a server is asked for names while somebody waits for a shell to complete one.
const completionPatience = time.Second

// Completer completes an argument or a flag in a shell. It is silent about errors.
type Completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// CompleteWith completes an argument with names of the server, of which it takes so many; 0: any number.
func (c *Connection) CompleteWith(names func(context.Context, *client.Client) []string, most int) Completer {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		to, err := c.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer to.Close()
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		return BeginningWith(typed, names(ctx, to)), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteOneOf completes a flag whose values are separated by commas.
func CompleteOneOf(values ...string) Completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1] // values that are complete
		names := BeginningWith(typed[len(before):], values)
		for i := range names {
			names[i] = before + names[i]
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// BeginningWith returns those of some names that begin with what was typed.
func BeginningWith(typed string, all []string) []string {
	var some []string
	for _, name := range all {
		if strings.HasPrefix(name, typed) {
			some = append(some, name)
		}
	}
	return some
}
