package command

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// completionPatience bounds how long a server is asked for names while somebody waits for a shell to complete one.
const completionPatience = time.Second

// completer completes an argument or a flag in a shell. It is silent about errors.
type completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completeWith completes an argument with names of the server, of which it takes so many; 0: any number.
func (c *connection) completeWith(names func(context.Context, *client.Client) []string, most int) completer {
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
		return beginningWith(typed, names(ctx, to)), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeModels completes the key of a model. Without a server, the models in the home are known.
func (c *connection) completeModels() completer {
	return c.completeWith(func(ctx context.Context, to *client.Client) []string {
		var models resource.Models
		if list, err := c.listModels(ctx, to, io.Discard); err != nil || json.Unmarshal(list, &models) != nil {
			return nil
		}
		keys := make([]string, len(models.Models))
		for i := range models.Models {
			keys[i] = models.Models[i].Key
		}
		return keys
	}, 1)
}

// completeOneOf completes a flag whose values are separated by commas.
func completeOneOf(values ...string) completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1] // values that are complete
		names := beginningWith(typed[len(before):], values)
		for i := range names {
			names[i] = before + names[i]
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeRuntimes completes the name of an installed runtime.
func completeRuntimes(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if store, err := openRuntimes(cmd); err == nil && len(args) == 0 {
		list, _ := store.List() // without a list, nothing is completed
		for _, r := range list {
			if r.Source != runtimes.OnPath {
				names = append(names, r.Name)
			}
		}
	}
	return beginningWith(typed, names), cobra.ShellCompDirectiveNoFileComp
}

func beginningWith(typed string, all []string) []string {
	var some []string
	for _, name := range all {
		if strings.HasPrefix(name, typed) {
			some = append(some, name)
		}
	}
	return some
}
