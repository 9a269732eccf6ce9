package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

const downloads = "/api/v1/models/download"

// Job is a download.
type Job struct {
	ID         string    `json:"job_id"`
	Status     string    `json:"status"` // downloading, paused, completed or failed; or already_downloaded, which has no ID
	TotalBytes int64     `json:"total_size_bytes"`
	Bytes      int64     `json:"downloaded_bytes"`
	Waiting    bool      `json:"waiting"` // for its turn, while it is downloading
	PerSecond  float64   `json:"bytes_per_second"`
	Estimate   time.Time `json:"estimated_completion"`
	Model      string    `json:"model"`
	Node       string    `json:"node"`    // of the cluster, that downloads it; empty: there is no cluster
	Trouble    string    `json:"trouble"` // why a request is being retried
	Error      *Fault    `json:"error"`
}

// The states of a job.
const (
	JobDownloading = "downloading"
	JobPaused      = "paused"
	JobCompleted   = "completed"
	JobFailed      = "failed"
)

// Jobs are the downloads of a server, or of the nodes of its cluster.
type Jobs struct {
	Jobs   []Job    `json:"jobs"`         // the newest first
	Silent []string `json:"silent_nodes"` // nodes that don't answer, so that their jobs are missing
}

// Jobs returns the downloads.
func (c *Client) Jobs(ctx context.Context) (Jobs, error) { return get[Jobs](ctx, c, downloads) }

// Download starts a download, or joins a running one. The quantization may be empty.
func (c *Client) Download(ctx context.Context, model, quantization string) (Job, error) {
	return send[Job](ctx, c, http.MethodPost, downloads, downloadRequest(model, quantization))
}

// Preview returns what Download would fetch.
func (c *Client) Preview(ctx context.Context, model, quantization string) (resource.Preview, error) {
	request := downloadRequest(model, quantization)
	request["estimate_only"] = true
	return send[resource.Preview](ctx, c, http.MethodPost, downloads, request)
}

func downloadRequest(model, quantization string) map[string]any {
	request := map[string]any{"model": model}
	if quantization != "" {
		request["quantization"] = quantization
	}
	return request
}

// Change pauses, resumes or cancels a job; what is that word.
func (c *Client) Change(ctx context.Context, id, what string) (Job, error) {
	return send[Job](ctx, c, http.MethodPost, downloads+"/"+url.PathEscape(id)+"/"+what, nil)
}

// Follow calls each when a job's state changes, until it is completed, failed or paused, and returns the last state.
func (c *Client) Follow(ctx context.Context, id string, each func(Job)) (Job, error) {
	var last Job
	ended := false
	err := c.Stream(ctx, http.MethodGet, downloads+"/"+url.PathEscape(id)+"/events", nil, decoded(func(event struct {
		Job Job `json:"job"`
	},
	) error {
		last = event.Job
		if last.Status != JobDownloading {
			ended = true
			return ErrStop
		}
		each(last)
		return nil
	}))
	if err == nil && !ended {
		err = ErrCut
	}
	return last, err
}
