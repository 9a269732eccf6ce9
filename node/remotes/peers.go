package remotes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

const (
	// peerPatience bounds how long the other nodes may take to answer a question that all of them are asked.
	peerPatience = 2 * time.Second
	// maxAnswer bounds such an answer, in bytes.
	maxAnswer = 4 << 20
)

// errNoPeer is the error of a request to a node that has left the cluster.
var errNoPeer = errors.New("it has left the cluster")

// Answer is what another node of the cluster has answered.
type Answer struct {
	Node   string
	Status int // of HTTP; 0: it hasn't answered
	Body   []byte
}

// AskPeers asks all other nodes of the cluster at a time, and returns their answers, by name. Those that can't be reached aren't waited
// for.
func (r *Remotes) AskPeers(ctx context.Context, path string) []Answer {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	peers := r.watches()
	answers := make([]Answer, 0, len(peers))
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, watch := range peers {
		asking.Go(func() {
			answer := askPeer(ctx, name, watch, http.MethodGet, path)
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, answer)
		})
	}
	asking.Wait()
	slices.SortFunc(answers, func(a, b Answer) int { return strings.Compare(a.Node, b.Node) })
	return answers
}

// AskPeer sends a request without a body to another node.
func (r *Remotes) AskPeer(ctx context.Context, name, method, path string) Answer {
	return askPeer(ctx, name, r.watches()[name], method, path)
}

// OpenPeer sends a request to another node whose answer may go on for long. The error is nil only if the status is 200.
func (r *Remotes) OpenPeer(ctx context.Context, name, path string) (io.ReadCloser, error) {
	watch := r.watches()[name]
	if watch == nil {
		return nil, &Error{name, errNoPeer}
	}
	body, err := watch.Open(ctx, http.MethodGet, path)
	if err != nil {
		return nil, &Error{name, err}
	}
	return body, nil
}

func askPeer(ctx context.Context, name string, watch *remote.Watch, method, path string) Answer {
	answer := Answer{Node: name}
	if watch == nil {
		return answer
	}
	if state, isAsked := watch.State(); isAsked && state.Away != "" {
		return answer
	}
	status, body, err := watch.Ask(ctx, method, path, maxAnswer)
	if err == nil {
		answer.Status, answer.Body = status, body
	}
	return answer
}

// watches returns the other nodes of the cluster by name.
func (r *Remotes) watches() map[string]*remote.Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	peers := map[string]*remote.Watch{}
	for name, at := range r.all {
		if at.isPeer() && at.watch != nil {
			peers[name] = at.watch
		}
	}
	return peers
}
