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
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// defineUnload defines `lmcaddy unload`.
func defineUnload(cmd *cobra.Command) {
	cmd.Long = `Unloads one instance or all. An instance is named by its id, or by its model's name or alias if that has one instance.
Without a name, the only loaded instance is unloaded; if there are several, you are asked which one, on a terminal.
It finishes its requests first. "lmcaddy ps" shows the ids.`
	cmd.Example = "  lmcaddy unload lmcaddy/tinychat\n  lmcaddy unload\n  lmcaddy unload --all"
	to := newConnection(cmd)
	cmd.ValidArgsFunction = to.completeWith(loadedNames, 1)
	asJSON := cmd.Flags().Bool("json", false, "print JSON: {\"unloaded\": [the ids]}")
	all := cmd.Flags().BoolP("all", "a", false, "unload every instance")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if *all && len(args) > 0 || len(args) > 1 {
			return errors.New("name one instance (\"lmcaddy ps\" shows them), or give --all")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		unloaded := []string{}
		say := func(id string) error {
			unloaded = append(unloaded, id)
			if *asJSON {
				return nil
			}
			_, err := terminal.Println(cmd.OutOrStdout(), id+" is unloaded.")
			return err
		}
		err := to.talk(cmd, func(ctx context.Context, c *client.Client) error {
			if *all {
				return unloadAll(ctx, c, say)
			}
			name, err := instanceToUnload(ctx, cmd, c, args)
			if err != nil || name == "" {
				return err
			}
			id, err := unloadOne(ctx, c, name)
			if err != nil {
				return err
			}
			return say(id)
		})
		switch {
		case err != nil:
			return err
		case *asJSON:
			return writeJSON(cmd.OutOrStdout(), map[string][]string{"unloaded": unloaded})
		case len(unloaded) == 0:
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "No model is loaded.")
		}
		return err
	}
}

// instanceToUnload returns the instance to unload: the given one, the only one, or the one that the user chooses; empty: none is loaded.
func instanceToUnload(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	models, err := c.Models(ctx)
	if err != nil {
		return "", err
	}
	ids := instanceIDs(models, "")
	switch {
	case len(ids) == 0:
		return "", nil
	case len(ids) == 1:
		return ids[0], nil
	case !canAsk(cmd):
		return "", fmt.Errorf("several models are loaded: name one of %s, or give --all", strings.Join(ids, ", "))
	}
	i, err := askWhich(ctx, cmd, "Unload which one?", ids)
	if err == nil && i < 0 {
		err = errors.New("nothing was unloaded")
	}
	if err != nil {
		return "", err
	}
	return ids[i], nil
}

// unloadAll unloads every instance, and says the id of each.
func unloadAll(ctx context.Context, c *client.Client, say func(id string) error) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	for _, id := range instanceIDs(models, "") {
		if _, err := c.Unload(ctx, id); err != nil && !isUnknown(err) { // it may have ended meanwhile
			return err
		}
		if err := say(id); err != nil {
			return err
		}
	}
	return nil
}

// unloadOne unloads the instance with an id, or else the only instance of the model with that name. It returns the id.
func unloadOne(ctx context.Context, c *client.Client, name string) (id string, err error) {
	id, unknown := c.Unload(ctx, name)
	if !isUnknown(unknown) {
		return id, unknown
	}
	models, err := c.Models(ctx)
	if err != nil {
		return "", err
	}
	switch ids := instanceIDs(models, name); len(ids) {
	case 0:
		return "", unknown
	case 1:
		return c.Unload(ctx, ids[0])
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
