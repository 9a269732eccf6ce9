package manage

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

type (
	// startedJob is the specification's "Download job", in the answer to its start.
	startedJob struct {
		ID         string      `json:"job_id,omitempty"`
		Status     fetch.State `json:"status"`
		TotalBytes *int64      `json:"total_size_bytes,omitempty"`
		StartedAt  string      `json:"started_at,omitempty"`
	}
	// downloadJob is the same in all other answers.
	downloadJob struct {
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
	jobList struct {
		Jobs   []downloadJob `json:"jobs"`
		Silent []string      `json:"silent_nodes,omitempty"` // of the cluster, whose jobs are missing
	}
)

// download is POST /api/v1/models/download.
func download(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c)
	if err != nil {
		return err
	}
	fields := body.Fields()
	quantization, estimate := fields.Text("quantization"), fields.Bool("estimate_only")
	if fields.Err != nil {
		return fields.Err
	}
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	request := endpoint.FetchRequest(c, name, name, quantization)
	if estimate {
		return previewDownload(c, jobs, request)
	}
	job, err := endpoint.StartDownload(c, jobs, name, request)
	if err != nil {
		return err
	}
	answer := startedJob{ID: job.ID, Status: job.State}
	if job.ID != "" {
		answer.TotalBytes, answer.StartedAt = &job.TotalBytes, when(job.StartedAt)
	}
	return c.Answer(answer)
}

// previewDownload answers a download with estimate_only: what it would fetch. Nothing is downloaded.
func previewDownload(c *endpoint.Call, jobs *fetch.Jobs, request fetch.Request) error {
	p, err := jobs.Preview(c.Request.Context(), request)
	if err != nil {
		return err
	}
	if !endpoint.MaySeeJob(c, p.Job) {
		return endpoint.ModelNotAllowed(request.Model)
	}
	answer := resource.Preview{
		Job: p.ID, Status: string(p.State), Model: c.Node.Downloads.Key(c.Request.Context(), p.Job), Repository: p.Repo, URL: p.Page(),
		Quantization: p.Quantization, Files: []resource.PreviewFile{}, TotalBytes: p.TotalBytes, LeftBytes: p.Left, OtherBytes: p.Others,
		FitsDisk: p.FitsDisk,
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
	return c.Answer(answer)
}

// listDownloads is GET /api/v1/models/download: the newest first.
func listDownloads(c *endpoint.Call) error {
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	list := jobList{Jobs: []downloadJob{}}
	for _, job := range slices.Backward(jobs.List()) {
		if endpoint.MaySeeJob(c, job) {
			list.Jobs = append(list.Jobs, describeJob(c, job))
		}
	}
	if others, silent := peerJobs(c); len(others)+len(silent) > 0 {
		for _, job := range others {
			list.Jobs = append(list.Jobs, asShown(c, job))
		}
		list.Silent = silent
		slices.SortStableFunc(list.Jobs, func(a, b downloadJob) int {
			return cmp.Or(cmp.Compare(b.StartedAt, a.StartedAt), cmp.Compare(b.ID, a.ID))
		})
	}
	return c.Answer(list)
}

// downloadStatus is GET /api/v1/models/download/status/{job_id}.
func downloadStatus(c *endpoint.Call) error { return withJob(c, "", endpoint.CheckSeesJob) }

// changeDownload is POST …/{job_id}/pause, which answers once it has stopped, resume, or cancel, which deletes what was fetched.
func changeDownload(change string) func(*endpoint.Call) error {
	return func(c *endpoint.Call) error { return withJob(c, change, endpoint.CheckChangesJob) }
}

// withJob changes the job in the path, if may allows it, and answers with the job. An empty change is none.
func withJob(c *endpoint.Call, change string, may func(*endpoint.Call, fetch.Job) error) error {
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	ctx, id := c.Request.Context(), c.Param
	job, err := jobs.Get(id)
	if err != nil {
		if isKnown, failed := changePeers(c, change); isKnown {
			return failed
		}
		return err
	}
	if err := may(c, job); err != nil {
		return err
	}
	switch change {
	case "pause":
		job, err = jobs.Pause(ctx, id)
	case "resume":
		job, err = jobs.Resume(id)
	case "cancel":
		job, err = jobs.Cancel(ctx, id)
		if now, _ := jobs.Get(id); err != nil && now.State == fetch.Completed {
			key := c.Node.Downloads.Key(ctx, now)
			err = &hub.Error{Kind: hub.Conflict, Message: fmt.Sprintf("The download %s is complete, so it can't be cancelled: "+
				"`lmcaddy rm %s`, or DELETE /api/v1/models/%s, deletes the model.", id, key, key)}
		}
	}
	if err != nil {
		return err
	}
	return c.Answer(describeJob(c, job))
}

func describeJob(c *endpoint.Call, j fetch.Job) downloadJob {
	n := downloadJob{
		ID: j.ID, Status: j.State, TotalBytes: j.TotalBytes, Bytes: j.DownloadedBytes, StartedAt: when(j.StartedAt),
		Model: c.Node.Downloads.Key(c.Request.Context(), j), Node: c.Node.Cluster.Name(),
	}
	if c.Identity.IsNode() {
		n.Owner, n.Keys = j.Owner, c.Node.Downloads.JobKeys(c.Request.Context(), j)
	}
	if c.IsAdmin() {
		n.Owner = j.Owner
	}
	switch j.State {
	case fetch.Downloading:
		n.Waiting = j.Waiting
		n.PerSecond, n.Estimate, n.Trouble = new(math.Round(j.BytesPerSecond)), when(j.EstimatedCompletion), c.Node.HidePaths(j.Reason)
	case fetch.Completed:
		n.Completed = when(j.CompletedAt)
	case fetch.Failed:
		n.Error = native.AppendErrorObject(nil, endpoint.FetchError(c, &hub.Error{Kind: j.Kind, Message: j.Reason}))
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

var downloadEventTypes = map[fetch.State]string{
	fetch.Downloading: "download.progress",
	fetch.Paused:      "download.paused",
	fetch.Completed:   "download.completed",
	fetch.Failed:      "download.failed",
}

type downloadEvent struct {
	Type string      `json:"type"`
	Job  downloadJob `json:"job"`
}

// downloadEvents is GET /api/v1/models/download/{job_id}/events: the current job and each change, until it ends or the server does.
func downloadEvents(c *endpoint.Call) error {
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	found, err := jobs.Get(c.Param)
	if err != nil {
		if isKnown, failed := peerEvents(c); isKnown {
			return failed
		}
		return err
	}
	key, ok := c.Node.Downloads.JobKey(c.Request.Context(), c.Identity, found)
	if !ok {
		return fetch.NoJob(c.Param)
	}
	c.Running.Uses(key)
	updates, stop, err := jobs.Subscribe(c.Param)
	if err != nil {
		return err
	}
	defer stop()
	s := c.NewStream()
	defer s.Close()
	if c.Request.Method == http.MethodHead {
		s.Send([]byte(endpoint.Comment)) // sends the header
		return nil
	}
	for {
		select {
		case <-c.Request.Context().Done():
			return c.Request.Context().Err()
		case <-c.Site.Exiting:
			return nil
		case job, ok := <-updates:
			if !ok {
				return nil
			}
			frame, err := downloadEvent{downloadEventTypes[job.State], describeJob(c, job)}.frame()
			if err != nil {
				return err
			}
			s.Send(frame)
		}
	}
}

func (e downloadEvent) frame() ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	frame := append([]byte("event: "+e.Type+"\ndata: "), data...)
	return append(frame, "\n\n"...), nil
}

// In a cluster, the downloads of all nodes are listed by each, and each takes what is to be done with them. A node sends another more of
// its jobs than clients, by which that one decides who may see and change them.

// peerJobs returns the jobs of the other nodes that the request's identity may see, and which nodes haven't told theirs. A node that asks
// for another is told of this one alone.
func peerJobs(c *endpoint.Call) (jobs []downloadJob, silent []string) {
	if !c.Node.Cluster.Is() || c.Identity.IsNode() {
		return nil, nil
	}
	for _, answer := range c.Node.Remotes.AskPeers(c.Request.Context(), "/api/v1/models/download") {
		var list jobList
		if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &list) != nil {
			silent = append(silent, answer.Node)
			continue
		}
		for _, j := range list.Jobs {
			if j.Node = answer.Node; !c.IsRestricted() || slices.ContainsFunc(j.Keys, c.Identity.MayUse) {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs, silent
}

// peerJob returns the job of another node with an id, which the request's identity may see.
func peerJob(c *endpoint.Call, id string) (j downloadJob, ok bool) {
	jobs, _ := peerJobs(c)
	i := slices.IndexFunc(jobs, func(j downloadJob) bool { return j.ID == id })
	if i < 0 {
		return downloadJob{}, false
	}
	return jobs[i], true
}

func asShown(c *endpoint.Call, j downloadJob) downloadJob {
	j.Keys = nil
	if !c.IsAdmin() {
		j.Owner = ""
	}
	return j
}

// changePeers has another node pause, resume or cancel its job; empty: nothing is done with it. isKnown is false if no node has it.
func changePeers(c *endpoint.Call, change string) (isKnown bool, _ error) {
	j, ok := peerJob(c, c.Param)
	if !ok {
		return false, nil
	}
	if change == "" {
		return true, c.Answer(asShown(c, j))
	}
	if !c.Identity.MayChangeJob(fetch.Job{Download: fetch.Download{ID: j.ID, Owner: j.Owner}}) {
		return true, endpoint.NotYourJob(j.ID)
	}
	answer := c.Node.Remotes.AskPeer(c.Request.Context(), j.Node, http.MethodPost, "/api/v1/models/download/"+j.ID+"/"+change)
	var changed downloadJob
	switch {
	case answer.Status == 0:
		return true, &hub.Error{
			Kind: hub.Internal, Message: "The node " + j.Node + ", which has the download " + j.ID + ", doesn't answer. Try again later.",
		}
	case answer.Status != http.StatusOK:
		c.WriteJSON(answer.Status, answer.Body) // an error in the same words
		return true, nil
	case json.Unmarshal(answer.Body, &changed) != nil:
		return true, &hub.Error{Kind: hub.Internal, Message: "The node " + j.Node + " has given an answer that can't be read."}
	}
	return true, c.Answer(asShown(c, changed))
}

// peerEvents streams the events of a job of another node. isKnown is false if no node has it.
func peerEvents(c *endpoint.Call) (isKnown bool, _ error) {
	j, ok := peerJob(c, c.Param)
	if !ok {
		return false, nil
	}
	if c.IsRestricted() {
		c.Running.Uses(j.Keys[slices.IndexFunc(j.Keys, c.Identity.MayUse)])
	}
	ctx, cancel := endpoint.UntilExit(c) // the stream would delay the end of the server
	defer cancel()
	events, err := c.Node.Remotes.OpenPeer(ctx, j.Node, "/api/v1/models/download/"+j.ID+"/events")
	if err != nil {
		return true, err
	}
	defer events.Close()
	s := c.NewStream()
	defer s.Close()
	if c.Request.Method == http.MethodHead {
		s.Send([]byte(endpoint.Comment)) // sends the header
		return true, nil
	}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var event downloadEvent
		if !ok || json.Unmarshal(data, &event) != nil {
			continue
		}
		event.Job = asShown(c, event.Job)
		frame, err := event.frame()
		if err != nil {
			return true, err
		}
		s.Send(frame)
	}
	return true, c.Request.Context().Err() // a stream that ends early is opened again
}
