package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// chooseModel chooses the model if none was named, and says which: the loaded one, that of the last conversation, the only one, or the
// one that the user picks.
func (ch *chat) chooseModel(ctx context.Context, c *client.Client) error {
	list, err := c.Models(ctx)
	if err != nil {
		return err
	}
	var all, loaded []string
	for i := range list.Models {
		if m := &list.Models[i]; m.Type == "llm" {
			all = append(all, m.Key)
			if len(m.Instances) > 0 {
				loaded = append(loaded, m.Key)
			}
		}
	}
	why := ""
	switch {
	case len(all) == 0:
		return errors.New("there is no model to ask: \"lmcaddy get MODEL\" downloads one, \"lmcaddy import FILE\" adds a local file")
	case len(loaded) == 1:
		ch.request.Model, why = loaded[0], "it is loaded"
	case len(all) == 1:
		ch.request.Model, why = all[0], "it is the only one"
	default:
		if ch.request.Model = lastUsed(ctx, c, list.Models); ch.request.Model != "" {
			why = "the last conversation was with it"
		}
	}
	if why != "" {
		terminal.Printf(ch.cmd.ErrOrStderr(), "Asking %s: %s.\n", ch.request.Model, why)
		return nil
	}
	if !kit.CanAsk(ch.cmd) {
		return fmt.Errorf("there are several models: name one of %s", strings.Join(all, ", "))
	}
	ch.request.Model, err = kit.AskWhich(ctx, ch.cmd, "Which model?", all, all, "no model was chosen")
	return err
}

// lastUsed returns the model of the last conversation if it is still there; empty: there is none.
func lastUsed(ctx context.Context, c *client.Client, models []resource.Model) string {
	last, err := c.Conversations(ctx, nil, "", "", 1)
	if err != nil || len(last.Conversations) == 0 {
		return ""
	}
	for i := range models {
		if models[i].Key == last.Conversations[0].Model {
			return models[i].Key
		}
	}
	return ""
}

// fetchMissing downloads a model that the server doesn't have, if the user wants that, and returns the name by which it can be asked.
func (ch *chat) fetchMissing(ctx context.Context, c *client.Client, model string) (string, error) {
	full, err := kit.FullName(ctx, ch.cmd, c, model)
	if err == nil || errors.As(err, new(*client.DownError)) {
		return full, err
	}
	plan, failed := c.Preview(ctx, model, "")
	switch {
	case failed != nil && !strings.Contains(model, "/"):
		return "", err // it is no name of the hub; the error names models that are there
	case !ch.yes && !kit.CanAsk(ch.cmd):
		return "", fmt.Errorf("%s isn't downloaded: \"lmcaddy get %s\" downloads it, and so does --yes here", model, model)
	case failed != nil:
		return "", failed
	}
	terminal.Printf(ch.cmd.ErrOrStderr(), "%s isn't downloaded.\n", model)
	if err := models.ShowPlan(ch.cmd.ErrOrStderr(), model, &plan); err != nil {
		return "", err
	}
	if !ch.yes {
		answer, err := kit.AskLine(ctx, ch.cmd, "Download it? [y/N] ")
		if err != nil {
			return "", err
		}
		if !kit.IsYes(answer) {
			return "", errors.New("nothing was downloaded")
		}
	}
	job, err := c.Download(ctx, model, "")
	if err == nil && job.ID != "" {
		job, err = models.AwaitJob(ctx, ch.cmd, c, job.ID, model)
	}
	return cmp.Or(job.Model, plan.Model, model), err
}
