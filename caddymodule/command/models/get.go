package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// get is one run of `lmcaddy get`.
type get struct {
	to                            *kit.Connection
	quantization                  string
	noWait, asJSON                bool
	follow, pause, resume, cancel string // ids of jobs
}

var jobFlags = []string{"follow", "pause", "resume", "cancel"}

// DefineGet defines `lmcaddy get`.
func DefineGet(cmd *cobra.Command) {
	cmd.Long = `Downloads a model to the server, and shows the progress. MODEL is a well-known model such as qwen/qwen3-4b, any
publisher/repository of the hub, or a model's URL there; @Q4_K_M behind it chooses a quantization. Another name is searched
for: on a terminal, you are asked which of the models found is meant. Without MODEL, the downloads are listed.

The server downloads in the background: interrupting this command doesn't stop it.`
	cmd.Example = `  lmcaddy get qwen/qwen3-4b
  lmcaddy get unsloth/Qwen3-4B-GGUF@Q8_0
  lmcaddy get https://huggingface.co/Qwen/Qwen3-4B-GGUF -q Q6_K
  lmcaddy get`
	cmd.Args = cobra.MaximumNArgs(1)
	g := get{to: kit.NewConnection(cmd)}
	flags := cmd.Flags()
	flags.StringVarP(&g.quantization, "quantization", "q", "", "such as Q4_K_M (default: the best that fits the server's memory)")
	flags.BoolVar(&g.noWait, "no-wait", false, "return once the download has begun")
	flags.BoolVar(&g.asJSON, "json", false, "print JSON: the downloads as GET /api/v1/models/download has them, or that of MODEL")
	flags.StringVar(&g.follow, "follow", "", "show the progress of the download `JOB`")
	flags.StringVar(&g.pause, "pause", "", "pause the download `JOB`")
	flags.StringVar(&g.resume, "resume", "", "resume the paused or failed download `JOB`")
	flags.StringVar(&g.cancel, "cancel", "", "cancel the download `JOB`, and delete its files")
	for _, flag := range jobFlags {
		_ = cmd.RegisterFlagCompletionFunc(flag, g.to.CompleteWith(kit.JobNames, 0)) // it fails only if there is no such flag
	}
	cmd.MarkFlagsMutuallyExclusive("follow", "pause", "resume", "cancel", "quantization")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, flag := range jobFlags {
			if flags.Changed(flag) && kit.IsNoName(flags.Lookup(flag).Value.String()) {
				return fmt.Errorf("--%s needs the id of a download: \"lmcaddy get\" lists them", flag)
			}
		}
		ofJob := g.follow + g.pause + g.resume + g.cancel
		if len(args) > 0 && ofJob != "" || len(args) == 0 && g.quantization != "" {
			return errors.New("give either a MODEL, or one of --follow, --pause, --resume and --cancel")
		}
		return g.to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			switch {
			case len(args) > 0:
				return g.start(ctx, cmd, c, args[0])
			case ofJob != "":
				return g.change(ctx, cmd, c)
			default:
				return g.list(ctx, cmd.OutOrStdout(), c)
			}
		})
	}
}

// start shows what will be downloaded, begins the download, and follows it unless --no-wait is given.
func (g *get) start(ctx context.Context, cmd *cobra.Command, c *client.Client, model string) error {
	quantization := g.quantization
	if quantization != "" && !isURL(model) {
		if strings.Contains(model, "@") {
			return fmt.Errorf("%s names a quantization already: leave out --quantization", model)
		}
		model, quantization = model+"@"+quantization, ""
	}
	plan, err := c.Preview(ctx, model, quantization)
	// Some hubs refuse what doesn't exist.
	refused, _ := errors.AsType[*client.Error](err)
	if isUnknown(err) || refused != nil && refused.Status == http.StatusForbidden && refused.Code == "hub_denied" {
		if model, err = chooseFound(ctx, cmd, c, model, err); err == nil {
			plan, err = c.Preview(ctx, model, quantization)
		}
	}
	if err == nil {
		err = ShowPlan(cmd.ErrOrStderr(), model, &plan)
	}
	if err != nil {
		return err
	}
	job, err := c.Download(ctx, model, quantization)
	if err != nil {
		return err
	}
	switch {
	case g.asJSON && job.ID == "":
		err = kit.WriteJSON(cmd.OutOrStdout(), map[string]string{"status": job.Status})
	case g.asJSON:
		err = g.printJob(ctx, cmd, c, job.ID, model)
	case job.ID == "":
		_, err = terminal.Println(cmd.OutOrStdout(), model+" is already downloaded.")
	case g.noWait:
		_, err = terminal.Println(cmd.OutOrStdout(), job.ID)
	default:
		err = followJob(ctx, cmd, c, job.ID, model)
	}
	return err
}

// printJob prints a job as JSON when it has ended, or at once with --no-wait.
func (g *get) printJob(ctx context.Context, cmd *cobra.Command, c *client.Client, id, model string) error {
	if !g.noWait {
		if _, err := AwaitJob(ctx, cmd, c, id, model); err != nil {
			return err
		}
	}
	var job json.RawMessage
	if err := c.Get(ctx, "/api/v1/models/download/status/"+id, &job); err != nil {
		return err
	}
	return kit.WriteJSON(cmd.OutOrStdout(), job)
}

func (g *get) change(ctx context.Context, cmd *cobra.Command, c *client.Client) error {
	if g.follow != "" {
		return followJob(ctx, cmd, c, g.follow, g.follow)
	}
	for _, change := range []struct{ id, what, done string }{
		{g.pause, "pause", "is paused"},
		{g.resume, "resume", "is resumed"},
		{g.cancel, "cancel", "is cancelled"},
	} {
		if change.id == "" {
			continue
		}
		if _, err := c.Change(ctx, change.id, change.what); err != nil {
			return err
		}
		if change.what == "resume" && !g.noWait {
			return followJob(ctx, cmd, c, change.id, change.id)
		}
		_, err := terminal.Printf(cmd.OutOrStdout(), "%s %s.\n", change.id, change.done)
		return err
	}
	return nil
}

// followJob shows the progress of a job until it ends, and what was downloaded.
func followJob(ctx context.Context, cmd *cobra.Command, c *client.Client, id, name string) error {
	job, err := AwaitJob(ctx, cmd, c, id, name)
	if err == nil {
		_, err = terminal.Printf(cmd.OutOrStdout(), "%s is downloaded (%s).\n", cmp.Or(job.Model, name), kit.Size(job.TotalBytes))
	}
	return err
}

// AwaitJob shows the progress of a job until it is completed. Interrupting it doesn't end the job. The name is used if the job has
// no model.
func AwaitJob(ctx context.Context, cmd *cobra.Command, c *client.Client, id, name string) (client.Job, error) {
	line := terminal.NewProgress(cmd.ErrOrStderr())
	job, err := c.Follow(ctx, id, func(j client.Job) { line.Update(j.Status, "%s", progressOf(j, time.Now())) })
	line.End()
	name = cmp.Or(job.Model, name)
	howToGoOn := fmt.Sprintf("\"lmcaddy get --follow %s\" follows it, \"lmcaddy get --cancel %s\" ends it", id, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return job, errors.New("interrupted; the download continues: " + howToGoOn)
	case errors.Is(err, client.ErrCut):
		return job, fmt.Errorf("%w: if the server was stopped, the download resumes when it runs again; %s", err, howToGoOn)
	case err != nil:
		return job, err
	}
	switch job.Status {
	case client.JobCompleted:
		return job, nil
	case client.JobPaused:
		return job, fmt.Errorf("the download of %s was paused: \"lmcaddy get --resume %s\" resumes it", name, id)
	default:
		return job, fmt.Errorf("the download of %s failed: %s", name, reasonOf(job))
	}
}

func reasonOf(j client.Job) string {
	if j.Error != nil {
		return j.Error.Message
	}
	return "the server doesn't say why; its log may"
}

func progressOf(j client.Job, now time.Time) string {
	text := fmt.Sprintf("%s of %s", kit.Size(j.Bytes), kit.Size(j.TotalBytes))
	if j.TotalBytes > 0 {
		text += fmt.Sprintf(", %.0f%%", 100*float64(j.Bytes)/float64(j.TotalBytes))
	}
	switch {
	case j.Trouble != "":
		return text + ", " + j.Trouble
	case j.Waiting:
		return text + ", waits for other downloads"
	}
	if j.PerSecond > 0 {
		text += fmt.Sprintf(", %s/s", kit.Size(int64(j.PerSecond)))
	}
	if left := j.Estimate.Sub(now).Round(time.Second); left > 0 {
		text += fmt.Sprintf(", %s left", left)
	}
	return text
}

func (g *get) list(ctx context.Context, out io.Writer, c *client.Client) error {
	if g.asJSON {
		var list json.RawMessage
		if err := c.Get(ctx, "/api/v1/models/download", &list); err != nil {
			return err
		}
		return kit.WriteJSON(out, list)
	}
	list, err := c.Jobs(ctx)
	if err != nil {
		return err
	}
	if err := writeJobs(out, list.Jobs, time.Now()); err != nil || len(list.Silent) == 0 {
		return err
	}
	_, err = terminal.Printf(out, "The downloads of nodes that don't answer are missing: %s.\n", strings.Join(list.Silent, ", "))
	return err
}

func writeJobs(out io.Writer, jobs []client.Job, now time.Time) error {
	if len(jobs) == 0 {
		_, err := fmt.Fprintln(out, kit.InWords("There are no downloads yet. \"lmcaddy get MODEL\" downloads a model."))
		return err
	}
	head := "JOB\tMODEL\tSTATUS\tPROGRESS"
	isOfNodes := slices.ContainsFunc(jobs, func(j client.Job) bool { return j.Node != "" })
	if isOfNodes {
		head += "\tNODE"
	}
	return terminal.WriteTable(out, head, jobs, func(j *client.Job) []string {
		progress := progressOf(*j, now)
		if j.Status == client.JobFailed {
			progress = reasonOf(*j)
		}
		cells := []string{j.ID, kit.OrDash(j.Model), j.Status, strings.TrimSpace(progress)}
		if isOfNodes {
			cells = append(cells, j.Node)
		}
		return cells
	})
}
