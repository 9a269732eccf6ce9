package node

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
	// maxPeerAnswer bounds such an answer, in bytes.
	maxPeerAnswer = 4 << 20
)

// errNoPeer is the error of a request to a node that has left the cluster.
var errNoPeer = errors.New("it has left the cluster")

// PeerAnswer is what another node of the cluster has answered.
type PeerAnswer struct {
	Node   string
	Status int // of HTTP; 0: it hasn't answered
	Body   []byte
}

// NodeName returns the name of this node in its cluster; empty: it is in none.
func (n *Node) NodeName() string {
	s := n.settings.Load().Cluster
	if s.URL == "" {
		return ""
	}
	return s.Name()
}

// AskPeers asks all other nodes of the cluster at a time, and returns their answers, by name. Those that can't be reached aren't waited
// for.
func (n *Node) AskPeers(ctx context.Context, path string) []PeerAnswer {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	peers := n.peers()
	answers := make([]PeerAnswer, 0, len(peers))
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
	slices.SortFunc(answers, func(a, b PeerAnswer) int { return strings.Compare(a.Node, b.Node) })
	return answers
}

// AskPeer sends a request without a body to another node.
func (n *Node) AskPeer(ctx context.Context, name, method, path string) PeerAnswer {
	return askPeer(ctx, name, n.peers()[name], method, path)
}

// OpenPeer sends a request to another node whose answer may go on for long. The error is nil only if the status is 200.
func (n *Node) OpenPeer(ctx context.Context, name, path string) (io.ReadCloser, error) {
	watch := n.peers()[name]
	if watch == nil {
		return nil, &RemoteError{name, errNoPeer}
	}
	body, err := watch.Open(ctx, http.MethodGet, path)
	if err != nil {
		return nil, &RemoteError{name, err}
	}
	return body, nil
}

func askPeer(ctx context.Context, name string, watch *remote.Watch, method, path string) PeerAnswer {
	answer := PeerAnswer{Node: name}
	if watch == nil {
		return answer
	}
	if state, isAsked := watch.State(); isAsked && state.Away != "" {
		return answer
	}
	status, body, err := watch.Ask(ctx, method, path, maxPeerAnswer)
	if err == nil {
		answer.Status, answer.Body = status, body
	}
	return answer
}

// peers returns the other nodes of the cluster by name.
func (n *Node) peers() map[string]*remote.Watch {
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	peers := map[string]*remote.Watch{}
	for name, at := range n.remotes.all {
		if at.config.Peer != "" && at.watch != nil {
			peers[name] = at.watch
		}
	}
	return peers
}
