package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
)

// get is one run of `lmcaddy get`.
type get struct {
	to                            *connection
	quantization                  string
	noWait, asJSON                bool
	follow, pause, resume, cancel string // ids of jobs
}

// defineGet defines `lmcaddy get`.
func defineGet(cmd *cobra.Command) {
	cmd.Long = `Downloads a model to the server, and shows the progress. MODEL is a well-known model such as qwen/qwen3-4b, any
publisher/repository of the hub, or a model's URL there. Without MODEL, the downloads are listed.

The server downloads in the background: interrupting this command doesn't stop it.`
	cmd.Args = cobra.MaximumNArgs(1)
	g := get{to: newConnection(cmd)}
	flags := cmd.Flags()
	flags.StringVarP(&g.quantization, "quantization", "q", "", "such as Q4_K_M; for URLs (default: the best that fits this machine)")
	flags.BoolVar(&g.noWait, "no-wait", false, "return once the download has begun")
	flags.BoolVar(&g.asJSON, "json", false, "list the downloads as JSON, as GET /api/v1/models/download has it")
	flags.StringVar(&g.follow, "follow", "", "show the progress of the download `JOB`")
	flags.StringVar(&g.pause, "pause", "", "pause the download `JOB`")
	flags.StringVar(&g.resume, "resume", "", "resume the paused or failed download `JOB`")
	flags.StringVar(&g.cancel, "cancel", "", "cancel the download `JOB`, and delete its files")
	cmd.MarkFlagsMutuallyExclusive("follow", "pause", "resume", "cancel", "json", "quantization")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ofJob := g.follow + g.pause + g.resume + g.cancel
		if len(args) > 0 && (ofJob != "" || g.asJSON) || len(args) == 0 && g.quantization != "" {
			return errors.New("give either a MODEL, or one of --follow, --pause, --resume, --cancel and --json")
		}
		return g.to.talk(cmd, func(ctx context.Context, c *client.Client) error {
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

// start begins a download, and follows it unless --no-wait is given.
func (g *get) start(ctx context.Context, cmd *cobra.Command, c *client.Client, model string) error {
	job, err := c.Download(ctx, model, g.quantization)
	if err != nil {
		return err
	}
	job.Model = model
	switch {
	case job.ID == "":
		_, err = fmt.Fprintln(cmd.OutOrStdout(), model+" is already downloaded.")
	case g.noWait:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), job.ID)
	default:
		err = followJob(ctx, cmd, c, job.ID, model)
	}
	return err
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
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s.\n", change.id, change.done)
		return err
	}
	return nil
}

// followJob shows the progress of a job until it ends. Interrupting it doesn't end the job. The name is used if the job has no
// model.
func followJob(ctx context.Context, cmd *cobra.Command, c *client.Client, id, name string) error {
	line := newProgressLine(cmd.ErrOrStderr())
	job, err := c.Follow(ctx, id, func(j client.Job) { line.update(j.Status, progressOf(j, time.Now())) })
	line.end()
	if job.Model != "" {
		name = job.Model
	}
	howToGoOn := fmt.Sprintf("\"lmcaddy get --follow %s\" follows it, \"lmcaddy get --cancel %s\" ends it", id, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted; the download continues: " + howToGoOn)
	case errors.Is(err, client.ErrCut):
		return fmt.Errorf("%w: if the server was stopped, the download resumes when it runs again; %s", err, howToGoOn)
	case err != nil:
		return err
	}
	switch job.Status {
	case client.JobCompleted:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is downloaded (%s).\n", name, humanize.Bytes(uint64(max(0, job.TotalBytes))))
		return err
	case client.JobPaused:
		return fmt.Errorf("the download of %s was paused: \"lmcaddy get --resume %s\" resumes it", name, id)
	default:
		return fmt.Errorf("the download of %s failed: %s", name, reasonOf(job))
	}
}

func reasonOf(j client.Job) string {
	if j.Error != nil {
		return j.Error.Message
	}
	return "the server doesn't say why; its log may"
}

// progressOf describes the progress of a job.
func progressOf(j client.Job, now time.Time) string {
	text := fmt.Sprintf("%s of %s", humanize.Bytes(uint64(max(0, j.Bytes))), humanize.Bytes(uint64(max(0, j.TotalBytes))))
	if j.TotalBytes > 0 {
		text += fmt.Sprintf(", %.0f%%", 100*float64(j.Bytes)/float64(j.TotalBytes))
	}
	if j.Trouble != "" {
		return text + ", " + j.Trouble
	}
	if j.PerSecond > 0 {
		text += fmt.Sprintf(", %s/s", humanize.Bytes(uint64(j.PerSecond)))
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
		return writeJSON(out, list)
	}
	jobs, err := c.Jobs(ctx)
	if err != nil {
		return err
	}
	return writeJobs(out, jobs, time.Now())
}

func writeJobs(out io.Writer, jobs []client.Job, now time.Time) error {
	if len(jobs) == 0 {
		_, err := fmt.Fprintln(out, inWords("There are no downloads yet. \"lmcaddy get MODEL\" downloads a model."))
		return err
	}
	table := newTable(out)
	fmt.Fprintln(table, "JOB\tMODEL\tSTATUS\tPROGRESS")
	for _, j := range jobs {
		progress := progressOf(j, now)
		if j.Status == client.JobFailed {
			progress = reasonOf(j)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", j.ID, orDash(j.Model), j.Status, strings.TrimSpace(progress))
	}
	return table.Flush()
}
