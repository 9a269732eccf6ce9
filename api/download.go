package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

type (
	// nativeStarted is the specification's "Download job", in the answer to its start.
	nativeStarted struct {
		ID         string      `json:"job_id,omitempty"`
		Status     fetch.State `json:"status"`
		TotalBytes *int64      `json:"total_size_bytes,omitempty"`
		StartedAt  string      `json:"started_at,omitempty"`
	}
	// nativeJob is the same in all other answers.
	nativeJob struct {
		ID         string          `json:"job_id"`
		Status     fetch.State     `json:"status"`
		TotalBytes int64           `json:"total_size_bytes"`
		Bytes      int64           `json:"downloaded_bytes"`
		StartedAt  string          `json:"started_at"`
		Completed  string          `json:"completed_at,omitempty"`
		Waiting    bool            `json:"waiting,omitempty"` // for its turn, while it is downloading
		PerSecond  *float64        `json:"bytes_per_second,omitempty"`
		Estimate   string          `json:"estimated_completion,omitempty"`
		Model      string          `json:"model"`
		Node       string          `json:"node,omitempty"`    // of the cluster, that downloads it
		Owner      string          `json:"owner,omitempty"`   // for administrators only
		Keys       []string        `json:"keys,omitempty"`    // by which it may be used; for other nodes only
		Trouble    string          `json:"trouble,omitempty"` // why it is being retried
		Error      json.RawMessage `json:"error,omitempty"`
	}
	nativeJobs struct {
		Jobs   []nativeJob `json:"jobs"`
		Silent []string    `json:"silent_nodes,omitempty"` // of the cluster, whose jobs are missing
	}
)

// download is POST /api/v1/models/download.
func (c *call) download() error {
	body, name, err := c.bodyAndModel()
	if err != nil {
		return err
	}
	quantization, bad := body.String("quantization")
	if bad != nil {
		return bad
	}
	estimate, bad := body.Bool("estimate_only")
	if bad != nil {
		return bad
	}
	jobs, err := c.node.Downloads()
	if err != nil {
		return err
	}
	request := c.fetching(name, name, quantization)
	if estimate {
		return c.previewDownload(jobs, request)
	}
	job, err := jobs.Start(c.r.Context(), request)
	if err != nil {
		return err
	}
	if !c.maySee(job) { // another identity began it, under another name for the same files
		return notAllowed(name)
	}
	answer := nativeStarted{ID: job.ID, Status: job.State}
	if job.ID != "" {
		answer.TotalBytes, answer.StartedAt = &job.TotalBytes, when(job.StartedAt)
	}
	return c.answer(answer)
}

// fetching is the request for a download of a model, by the name that the client gave and the one that hubs know.
func (c *call) fetching(name, model, quantization string) fetch.Request {
	return fetch.Request{
		Model: model, Quantization: quantization, Owner: c.owner(),
		May:       c.mayFetch(name),
		MayResume: func(j fetch.Job) bool { return c.mayChange(j) == nil || j.State == fetch.Failed && c.maySee(j) },
	}
}

// previewDownload answers a download with estimate_only: what it would fetch. Nothing is downloaded.
func (c *call) previewDownload(jobs *fetch.Jobs, request fetch.Request) error {
	p, err := jobs.Preview(c.r.Context(), request)
	if err != nil {
		return err
	}
	if !c.maySee(p.Job) {
		return notAllowed(request.Model)
	}
	answer := resource.Preview{
		Job: p.ID, Status: string(p.State), Model: c.node.DownloadedKey(c.r.Context(), p.Job), Repository: p.Repo, URL: p.Page(), Quantization: p.Quantization,
		Files: []resource.PreviewFile{}, TotalBytes: p.TotalBytes, LeftBytes: p.Left, OtherBytes: p.Others, FitsDisk: p.FitsDisk,
	}
	if p.ID == "" && p.State == fetch.Downloading {
		answer.Status = "estimated"
	}
	for i, size := range p.Sizes {
		answer.Files = append(answer.Files, resource.PreviewFile{Path: p.Files[i], SizeBytes: size})
	}
	if p.Free >= 0 {
		answer.FreeBytes = &p.Free
	}
	return c.answer(answer)
}

// listDownloads is GET /api/v1/models/download: the newest first.
func (c *call) listDownloads() error {
	jobs, err := c.node.Downloads()
	if err != nil {
		return err
	}
	list := nativeJobs{Jobs: []nativeJob{}}
	for _, job := range slices.Backward(jobs.List()) {
		if !c.maySee(job) {
			continue
		}
		list.Jobs = append(list.Jobs, c.job(job))
	}
	if others, silent := c.peerJobs(); len(others)+len(silent) > 0 {
		list.Jobs, list.Silent = append(list.Jobs, others...), silent
		sortJobs(list.Jobs)
	}
	return c.answer(list)
}

// downloadStatus is GET /api/v1/models/download/status/{job_id}.
func (c *call) downloadStatus() error {
	return c.withJob("", c.seeJob, func(_ context.Context, jobs *fetch.Jobs, id string) (fetch.Job, error) { return jobs.Get(id) })
}

// pauseDownload is POST /api/v1/models/download/{job_id}/pause: it answers once the download has stopped.
func (c *call) pauseDownload() error {
	return c.withJob("pause", c.mayChange, func(ctx context.Context, jobs *fetch.Jobs, id string) (fetch.Job, error) { return jobs.Pause(ctx, id) })
}

// resumeDownload is POST /api/v1/models/download/{job_id}/resume.
func (c *call) resumeDownload() error {
	return c.withJob("resume", c.mayChange, func(_ context.Context, jobs *fetch.Jobs, id string) (fetch.Job, error) { return jobs.Resume(id) })
}

// cancelDownload is POST /api/v1/models/download/{job_id}/cancel: it deletes what was fetched, unless the job is completed.
func (c *call) cancelDownload() error {
	return c.withJob("cancel", c.mayChange, func(ctx context.Context, jobs *fetch.Jobs, id string) (fetch.Job, error) {
		job, err := jobs.Cancel(ctx, id)
		if now, _ := jobs.Get(id); err != nil && now.State == fetch.Completed {
			key := c.node.DownloadedKey(ctx, now)
			return job, &fetch.Error{Kind: fetch.Conflict, Message: fmt.Sprintf("The download %s is complete, so it can't be cancelled: "+
				"`lmcaddy rm %s`, or DELETE /api/v1/models/%s, deletes the model.", id, key, key)}
		}
		return job, err
	})
}

// maySee reports whether the request's identity may know of a job, or of files that need none.
func (c *call) maySee(j fetch.Job) bool {
	_, ok := c.node.JobKey(c.r.Context(), c.who, j)
	return ok
}

// seeJob returns an error if the request's identity may not know of a job: the same as if there were no such job.
func (c *call) seeJob(j fetch.Job) error {
	if !c.maySee(j) {
		return fetch.NoJob(j.ID)
	}
	return nil
}

// mayChange returns an error if the request's identity may not pause, resume and cancel a job.
func (c *call) mayChange(j fetch.Job) error {
	if err := c.seeJob(j); err != nil || c.who.MayChangeJob(j) {
		return err
	}
	return notTheirJob(j.ID)
}

// notTheirJob is the error of a change of another's download.
func notTheirJob(id string) *translate.Error {
	return &translate.Error{
		Kind: translate.KindForbidden, Code: "not_your_download",
		Message: "The download " + id + " is another's: only who began it, or an administrator, may change it.",
	}
}

// withJob calls do with the job in the path, if may allows it, and answers with the job. change is what do does, for another node that has
// the job.
func (c *call) withJob(change string, may func(fetch.Job) error, do func(context.Context, *fetch.Jobs, string) (fetch.Job, error)) error {
	jobs, err := c.node.Downloads()
	if err != nil {
		return err
	}
	found, err := jobs.Get(c.param)
	if err != nil {
		if isKnown, failed := c.changePeers(change); isKnown {
			return failed
		}
		return err
	}
	if err := may(found); err != nil {
		return err
	}
	job, err := do(c.r.Context(), jobs, c.param)
	if err != nil {
		return err
	}
	return c.answer(c.job(job))
}

// job is a job as clients see it.
func (c *call) job(j fetch.Job) nativeJob {
	n := nativeJob{
		ID: j.ID, Status: j.State, TotalBytes: j.TotalBytes, Bytes: j.DownloadedBytes, StartedAt: when(j.StartedAt),
		Model: c.node.DownloadedKey(c.r.Context(), j), Node: c.node.NodeName(),
	}
	if c.who.IsNode() {
		n.Owner, n.Keys = j.Owner, c.node.JobKeys(c.r.Context(), j)
	}
	if c.who != nil && c.who.May(node.ScopeAdmin) {
		n.Owner = j.Owner
	}
	switch j.State {
	case fetch.Downloading:
		n.Waiting = j.Waiting
		n.PerSecond, n.Estimate, n.Trouble = new(math.Round(j.BytesPerSecond)), when(j.EstimatedCompletion), c.node.HidePaths(j.Reason)
	case fetch.Completed:
		n.Completed = when(j.CompletedAt)
	case fetch.Failed:
		n.Error = native.AppendErrorObject(nil, c.asFetched(&fetch.Error{Kind: j.Kind, Message: j.Reason}))
	default:
	}
	return n
}

// when is a time as the native API has it, in ISO 8601; empty for the zero time.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
