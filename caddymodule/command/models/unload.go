package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefineUnload defines `lmcaddy unload`.
func DefineUnload(cmd *cobra.Command) {
	cmd.Long = `Unloads one instance or all. An instance is named by its id, or by its model's name or alias if that has one instance.
Without a name, the only loaded instance is unloaded; if there are several, you are asked which one, on a terminal.
It finishes its requests first. "lmcaddy ps" shows the ids.`
	cmd.Example = "  lmcaddy unload lmcaddy/tinychat\n  lmcaddy unload\n  lmcaddy unload --all"
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = to.CompleteWith(kit.LoadedNames, 1)
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
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
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
			return kit.WriteJSON(cmd.OutOrStdout(), map[string][]string{"unloaded": unloaded})
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
	ids := kit.InstanceIDs(models, "")
	switch {
	case len(ids) == 0:
		return "", nil
	case len(ids) == 1:
		return ids[0], nil
	case !kit.CanAsk(cmd):
		return "", fmt.Errorf("several models are loaded: name one of %s, or give --all", strings.Join(ids, ", "))
	}
	return kit.AskWhich(ctx, cmd, "Unload which one?", ids, ids, "nothing was unloaded")
}

// unloadAll unloads every instance, and says the id of each.
func unloadAll(ctx context.Context, c *client.Client, say func(id string) error) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	for _, id := range kit.InstanceIDs(models, "") {
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
	switch ids := kit.InstanceIDs(models, name); len(ids) {
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

// DefineRM defines `lmcaddy rm`.
func DefineRM(cmd *cobra.Command) {
	cmd.Long = `Deletes a model's files from the server's own models folder. A model that is loaded isn't deleted, nor is one
in another folder (models_dir, another program's store). Of a symbolic link, only the link is deleted. Without MODEL, you are
asked which one, on a terminal.`
	cmd.Example = `  lmcaddy rm qwen/qwen3-4b
  lmcaddy rm qwen/qwen3-4b@q8_0 --yes`
	cmd.Args = cobra.MaximumNArgs(1)
	to := kit.NewConnection(cmd)
	cmd.ValidArgsFunction = CompleteModels(to)
	asJSON := cmd.Flags().Bool("json", false, "print JSON: {\"deleted\": MODEL}")
	yes := cmd.Flags().BoolP("yes", "y", false, "don't ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			model, err := modelToRemove(ctx, cmd, c, args)
			if err == nil && !*yes {
				err = confirmRemoval(ctx, cmd, c, model)
			}
			if err == nil {
				err = c.Remove(ctx, model)
			}
			switch {
			case err != nil:
				return err
			case *asJSON:
				return kit.WriteJSON(cmd.OutOrStdout(), map[string]string{"deleted": model})
			}
			_, err = terminal.Println(cmd.OutOrStdout(), model+" is deleted.")
			return err
		})
	}
}

// modelToRemove returns the model to delete: the given one, or the one that the user chooses.
func modelToRemove(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	models, err := c.Models(ctx)
	if err != nil {
		return "", err
	}
	var keys, lines []string
	for _, m := range models.Models {
		if len(m.Instances) == 0 {
			keys = append(keys, m.Key)
			lines = append(lines, fmt.Sprintf("%s  %s", m.Key, kit.Size(m.SizeBytes)))
		}
	}
	switch {
	case len(keys) == 0:
		return "", errors.New("there is no model that isn't loaded: unload one first with \"lmcaddy unload\"")
	case !kit.CanAsk(cmd):
		return "", fmt.Errorf("name the model to delete. There are: %s", strings.Join(keys, ", "))
	}
	return kit.AskWhich(ctx, cmd, "Delete which one?", lines, keys, "nothing was deleted")
}

// confirmRemoval asks the user at the terminal. A model that isn't there is an error before that.
func confirmRemoval(ctx context.Context, cmd *cobra.Command, c *client.Client, key string) error {
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	takes := ""
	if !slices.ContainsFunc(models.Broken, func(b resource.Broken) bool { return kit.GoesBy(b.Key, key) }) {
		var found resource.ModelDetails
		if err := c.Model(ctx, key, &found); err != nil {
			return err
		}
		key, takes = found.Key, " ("+kit.Size(found.SizeBytes)+")"
	}
	return kit.Confirm(ctx, cmd, key+takes)
}
