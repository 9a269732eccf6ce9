package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// Models returns the models, and those that can't be used.
func (c *Client) Models(ctx context.Context) (resource.Models, error) {
	return get[resource.Models](ctx, c, "/api/v1/models")
}

// Companions returns the files that belong to models and are none themselves.
func (c *Client) Companions(ctx context.Context) (resource.Companions, error) {
	return get[resource.Companions](ctx, c, "/api/v1/models/companions")
}

// Unload unloads an instance, and returns its id, which differs from the name if that is an alias.
func (c *Client) Unload(ctx context.Context, name string) (id string, _ error) {
	answer, err := send[resource.Loaded](ctx, c, http.MethodPost, "/api/v1/models/unload", map[string]string{"instance_id": name})
	return cmp.Or(answer.Instance, name), err
}

// Remove deletes a model's files.
func (c *Client) Remove(ctx context.Context, key string) error {
	return c.ask(ctx, http.MethodDelete, "/api/v1/models/"+url.PathEscape(key), nil, nil)
}

// Pin pins the instances of a model, or unpins them. The answer is decoded into a value, such as a [resource.Pinned].
func (c *Client) Pin(ctx context.Context, name string, pinned bool, into any) error {
	return c.ask(ctx, http.MethodPost, "/api/v1/models/pin", map[string]any{"model": name, "pinned": pinned}, into)
}

// Model returns all that is known of a model, by any of its names.
func (c *Client) Model(ctx context.Context, name string, into any) error {
	return c.Get(ctx, "/api/v1/models/"+url.PathEscape(name), into)
}

// searchPatience is longer than a server waits for a hub.
const searchPatience = 3 * time.Minute

// Search finds models at the server's hubs. The result is decoded into a value, such as a [resource.Found]. A limit of 0 is the
// server's choice.
func (c *Client) Search(ctx context.Context, words string, limit int, into any) error {
	query := url.Values{"query": {words}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return c.GetWithin(ctx, searchPatience, "/api/v1/models/search?"+query.Encode(), into)
}

// Load loads a model, and calls each with the progress of the load, 0 to 1, once it has begun. It returns the response's JSON,
// which is a [resource.Loaded]. A server that doesn't tell of the progress will do.
func (c *Client) Load(ctx context.Context, request any, each func(progress float64)) (json.RawMessage, error) {
	resp, err := c.request(ctx, http.MethodPost, "/api/v1/models/load", eventStream, request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var result json.RawMessage
	if !isEventStream(resp) {
		err := decode(resp, c.Address(), &result)
		return result, err
	}
	err = follow(ctx, resp, decoded(func(event struct {
		Type     string          `json:"type"`
		Progress float64         `json:"progress"`
		Result   json.RawMessage `json:"result"`
		Error    Fault           `json:"error"`
	},
	) error {
		switch event.Type {
		case "error":
			return event.Error.Err()
		case "model_load.end":
			result = event.Result
			return ErrStop
		}
		each(event.Progress)
		return nil
	}))
	if err == nil && result == nil {
		err = ErrCut
	}
	return result, err
}

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
