package remote

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// The headers of requests between the nodes of a cluster, beside the key.
const (
	NodeHeader  = "Lm-Node"  // the name of the node that sends the request
	OwnerHeader = "Lm-Owner" // who has sent it to that node, escaped as in a query
	TTLHeader   = "Lm-Ttl"   // how long the model stays loaded if the request has it loaded, as a duration of Go
	KeepHeader  = "Lm-Keep"  // how long it stays loaded after the request, likewise; with ";own": if the owner has loaded it
)

const keepOwn = ";own"

// ParseTTL returns what another node has sent in the TTLHeader; nil: nothing.
func ParseTTL(header http.Header) *time.Duration {
	ttl, err := time.ParseDuration(header.Get(TTLHeader))
	if err != nil || ttl < 0 {
		return nil
	}
	return &ttl
}

// ParseRetention returns what another node has sent in the KeepHeader; nil: nothing.
func ParseRetention(header http.Header) *schedule.Retention {
	text, own := strings.CutSuffix(header.Get(KeepHeader), keepOwn)
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl < 0 {
		return nil
	}
	return &schedule.Retention{TTL: ttl, OnlyOwned: own}
}

// addLoaded asks another node how many requests its instances answer at a time, and whether they are pinned.
func (s *Server) addLoaded(ctx context.Context, models []Model) error {
	var said struct {
		Instances []struct {
			Model  string `json:"model"`
			Slots  int    `json:"slots"`
			Pinned bool   `json:"pinned"`
		} `json:"instances"`
	}
	if err := s.ask(ctx, "/api/v1/ps", nil, &said); err != nil {
		return err
	}
	slots, pinned := map[string]int{}, map[string]bool{}
	for _, in := range said.Instances {
		slots[in.Model] += max(0, in.Slots)
		pinned[in.Model] = pinned[in.Model] || in.Pinned
	}
	for i := range models {
		models[i].Slots, models[i].Pinned = slots[models[i].ID], pinned[models[i].ID]
	}
	return nil
}

// Open sends another node a request without a body, and returns the body of the answer if its status is 200.
func (s *Server) Open(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := s.request(ctx, method, path)
	if err != nil {
		return nil, err
	}
	resp, err := s.do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, &statusError{status: resp.StatusCode}
	}
	return resp.Body, nil
}

// Ask sends another node a request without a body, and returns the status and the body of the answer, which may have most bytes.
func (s *Server) Ask(ctx context.Context, method, path string, most int64) (status int, body []byte, err error) {
	req, err := s.request(ctx, method, path)
	if err != nil {
		return 0, nil, err
	}
	return s.read(req, most)
}
