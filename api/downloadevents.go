package api

import (
	"encoding/json"
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
)

// downloadEventTypes are the events for a job's states.
var downloadEventTypes = map[fetch.State]string{
	fetch.Downloading: "download.progress",
	fetch.Paused:      "download.paused",
	fetch.Completed:   "download.completed",
	fetch.Failed:      "download.failed",
}

type downloadEvent struct {
	Type string    `json:"type"`
	Job  nativeJob `json:"job"`
}

// downloadEvents is GET /api/v1/models/download/{job_id}/events: an event with the current job, and one for each change, up to the
// state that ends the job. A paused job hasn't ended. The stream ends early if the server shuts down, since it would delay that.
func (c *call) downloadEvents() error {
	jobs, err := c.node.Downloads()
	if err != nil {
		return err
	}
	found, err := jobs.Get(c.param)
	if err != nil {
		if isKnown, failed := c.peerEvents(); isKnown {
			return failed
		}
		return err
	}
	key, ok := c.node.JobKey(c.r.Context(), c.who, found)
	if !ok {
		return fetch.NoJob(c.param)
	}
	c.running.Uses(key)
	updates, stop, err := jobs.Subscribe(c.param)
	if err != nil {
		return err
	}
	defer stop()
	s := c.newStream()
	defer s.close()
	if c.r.Method == http.MethodHead {
		s.send([]byte(comment)) // sends the header
		return nil
	}
	for {
		select {
		case <-c.r.Context().Done():
			return c.r.Context().Err()
		case <-c.site.Exiting:
			return nil
		case job, ok := <-updates:
			if !ok {
				return nil
			}
			frame, err := c.downloadFrame(job)
			if err != nil {
				return err
			}
			s.send(frame)
		}
	}
}

func (c *call) downloadFrame(job fetch.Job) ([]byte, error) {
	return downloadEvent{downloadEventTypes[job.State], c.job(job)}.frame()
}

func (e downloadEvent) frame() ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	frame := append([]byte("event: "+e.Type+"\ndata: "), data...)
	return append(frame, "\n\n"...), nil
}
