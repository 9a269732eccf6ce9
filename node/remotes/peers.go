package remotes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

const (
	peerPatience = 2 * time.Second // bounds how long the other nodes may take to answer a question that all of them are asked
	maxAnswer    = 4 << 20         // bounds such an answer, in bytes
)

var errNoPeer = errors.New("it has left the cluster")

// Answer is what another node of the cluster has answered.
type Answer struct {
	Node   string
	Status int // of HTTP; 0: it hasn't answered
	Body   []byte
}

// AskPeers asks all other nodes of the cluster at a time. Their answers are in order of names; unreachable ones aren't waited for.
func (r *Remotes) AskPeers(ctx context.Context, path string) []Answer {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	var answers []Answer
	for _, s := range r.List() {
		if s.IsPeer {
			answers = append(answers, Answer{Node: s.Name})
		}
	}
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() { answers[i] = r.AskPeer(ctx, answers[i].Node, http.MethodGet, path) })
	}
	asking.Wait()
	return answers
}

// AskPeer sends a request without a body to another node.
func (r *Remotes) AskPeer(ctx context.Context, name, method, path string) Answer {
	answer := Answer{Node: name}
	watch := r.peer(name)
	if watch == nil {
		return answer
	}
	if state, isAsked := watch.State(); isAsked && state.Away != "" {
		return answer
	}
	if status, body, err := watch.Ask(ctx, method, path, maxAnswer); err == nil {
		answer.Status, answer.Body = status, body
	}
	return answer
}

// OpenPeer sends a request to another node whose answer may go on for long. The error is nil only if the status is 200.
func (r *Remotes) OpenPeer(ctx context.Context, name, path string) (io.ReadCloser, error) {
	err := errNoPeer
	if watch := r.peer(name); watch != nil {
		var body io.ReadCloser
		if body, err = watch.Open(ctx, http.MethodGet, path); err == nil {
			return body, nil
		}
	}
	return nil, failed(name, err)
}

// peer returns what reaches another node; nil: nothing does.
func (r *Remotes) peer(name string) *remote.Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.all[name]; at != nil && at.isPeer() {
		return at.watch
	}
	return nil
}
