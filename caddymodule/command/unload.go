package command

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// defineUnload defines `lmcaddy unload`.
func defineUnload(cmd *cobra.Command) {
	cmd.Long = `Unloads one instance or all. An instance is named by its id, or by its model's name or alias if that has one instance.
It finishes its requests first. "lmcaddy status" shows the ids.`
	to := newConnection(cmd)
	all := cmd.Flags().BoolP("all", "a", false, "unload every instance")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if *all && len(args) > 0 || !*all && len(args) != 1 {
			return errors.New("name one instance (\"lmcaddy status\" shows them), or give --all")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.talk(cmd, func(ctx context.Context, c *client.Client) error {
			say := func(text string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
				return err
			}
			if *all {
				return unloadAll(ctx, c, say)
			}
			id, err := unloadOne(ctx, c, args[0])
			if err != nil {
				return err
			}
			return say(id + " is unloaded.")
		})
	}
}

func unloadAll(ctx context.Context, c *client.Client, say func(string) error) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	ids := instanceIDs(models, "")
	if len(ids) == 0 {
		return say("No model is loaded.")
	}
	for _, id := range ids {
		if err := c.Unload(ctx, id); err != nil && !isUnknown(err) { // it may have ended meanwhile
			return err
		}
		if err := say(id + " is unloaded."); err != nil {
			return err
		}
	}
	return nil
}

// unloadOne unloads the instance with an id, or else the only instance of the model with that name. It returns the id.
func unloadOne(ctx context.Context, c *client.Client, name string) (id string, err error) {
	unknown := c.Unload(ctx, name)
	if !isUnknown(unknown) {
		return name, unknown
	}
	models, err := c.Models(ctx)
	if err != nil {
		return "", err
	}
	switch ids := instanceIDs(models, name); len(ids) {
	case 0:
		return "", unknown
	case 1:
		return ids[0], c.Unload(ctx, ids[0])
	default:
		return "", fmt.Errorf("%s has several instances: name one of %s", name, strings.Join(ids, ", "))
	}
}

// isUnknown reports whether the server knows no instance of that name.
func isUnknown(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Type == "model_not_found"
}

// instanceIDs returns the instances of the models with a name, with or without the publisher; an empty name means all.
func instanceIDs(models resource.Models, name string) []string {
	var ids []string
	for _, m := range models.Models {
		if name != "" && !goesBy(m.Key, name) && !hasAlias(m.Aliases, name) {
			continue
		}
		for _, in := range m.Instances {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// goesBy reports whether a name is a model's key, with or without the publisher.
func goesBy(key, name string) bool {
	_, bare, _ := strings.Cut(key, "/")
	return strings.EqualFold(name, key) || strings.EqualFold(name, bare)
}

// hasAlias reports whether a name matches one of the aliases, which may be patterns.
func hasAlias(aliases []string, name string) bool {
	return slices.ContainsFunc(aliases, func(alias string) bool {
		matches, err := path.Match(alias, name)
		return err == nil && matches
	})
}
