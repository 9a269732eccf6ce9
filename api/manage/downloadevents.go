package manage

import (
	"encoding/json"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
)

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
