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
	cmd.Long = `Unloads an instance, by its id or by its model's name, or an alias of it, where that has one instance, or all instances. What an
instance is doing, it finishes first. "lmcaddy status" shows the ids.`
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
			tell := func(text string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
				return err
			}
			if *all {
				return unloadAll(ctx, c, tell)
			}
			id, err := unloadOne(ctx, c, args[0])
			if err != nil {
				return err
			}
			return tell(id + " is unloaded.")
		})
	}
}

func unloadAll(ctx context.Context, c *client.Client, tell func(string) error) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	ids := instanceIDs(models, "")
	if len(ids) == 0 {
		return tell("No model is loaded.")
	}
	for _, id := range ids {
		if err := c.Unload(ctx, id); err != nil && !isUnknown(err) { // it may have gone meanwhile
			return err
		}
		if err := tell(id + " is unloaded."); err != nil {
			return err
		}
	}
	return nil
}

// unloadOne ends the instance that has an id, else the only one of the model that has the name. It gives the id.
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

// isUnknown tells whether the server knows no instance of a name.
func isUnknown(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Type == "model_not_found"
}

// instanceIDs are those of the models that go by a name, with or without its publisher; of all with an empty name.
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

// goesBy tells whether a name is a model's key, with or without the publisher.
func goesBy(key, name string) bool {
	_, bare, _ := strings.Cut(key, "/")
	return strings.EqualFold(name, key) || strings.EqualFold(name, bare)
}

// hasAlias tells whether a name is one of the aliases, which may be patterns.
func hasAlias(aliases []string, name string) bool {
	return slices.ContainsFunc(aliases, func(alias string) bool {
		matches, err := path.Match(alias, name)
		return err == nil && matches
	})
}
