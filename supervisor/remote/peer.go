package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// The headers of requests between the nodes of a cluster, beside the key.
const (
	NodeHeader  = "Lm-Node"  // the name of the node that sends the request
	OwnerHeader = "Lm-Owner" // who has sent it to that node, escaped as in a query
	TTLHeader   = "Lm-Ttl"   // how long the model stays loaded if the request has it loaded, as a duration of Go
	KeepHeader  = "Lm-Keep"  // how long it stays loaded after the request, likewise; with ";own": if the owner has loaded it
)

const (
	// checkPeerEvery is the interval at which another node of the cluster is asked whether it is alive, and askPeerTimeout how long
	// it may take to answer, also with the list of its models.
	checkPeerEvery = 2 * time.Second
	askPeerTimeout = 3 * time.Second
	// mostMissed is how many of these questions in a row may go unanswered before the node is given up, with the requests that it
	// hasn't answered. A node that is busy may answer late, and one behind a broken network never.
	mostMissed = 2
)

// errSevered is the error of requests to a node that has stopped answering.
var errSevered = errors.New("it has stopped answering")

// postPeer sends a body to another node. The answer breaks off when the node is given up.
func (s *Server) postPeer(ctx context.Context, path string, body supervisor.Payload) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	severed := s.severed
	s.mu.Unlock()
	detach := context.AfterFunc(severed, func() { cancel(errSevered) })
	end := func() {
		detach()
		cancel(nil)
	}
	resp, err := s.send(ctx, path, body)
	if err != nil {
		end()
		if errors.Is(context.Cause(ctx), errSevered) {
			err = errSevered
		}
		return nil, err
	}
	resp.Body = &peerBody{resp.Body, end}
	return resp, nil
}

const keepOwn = ";own"

func formatRetention(r *supervisor.Retention) string {
	text := r.TTL.String()
	if r.OnlyOwned {
		text += keepOwn
	}
	return text
}

// ParseRetention returns what another node has sent in the KeepHeader; nil: nothing.
func ParseRetention(header http.Header) *supervisor.Retention {
	text, own := strings.CutSuffix(header.Get(KeepHeader), keepOwn)
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl < 0 {
		return nil
	}
	return &supervisor.Retention{TTL: ttl, OnlyOwned: own}
}

// giveUp gives up the requests to another node that has stopped answering.
func (w *Watch) giveUp(err error) {
	if w.config.Peer != "" && errors.Is(err, context.DeadlineExceeded) {
		w.abandon()
	}
}

// abandon gives up the requests under way.
func (s *Server) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sever()
	s.severed, s.sever = context.WithCancel(context.Background())
	s.Close()
}

type peerBody struct {
	io.ReadCloser
	end func()
}

func (b *peerBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
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
	if err := s.get(ctx, "/api/v1/ps", &said); err != nil {
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
	resp, err := s.do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return 0, nil, s.withoutURL(err)
	case int64(len(body)) > most:
		return 0, nil, errors.New("its answer is too large")
	}
	return resp.StatusCode, body, nil
}
