package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

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
