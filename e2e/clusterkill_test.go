package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// killing is what became of the requests of a test that kills nodes.
type killing struct {
	mu       sync.Mutex
	answered map[string]string // the text of each stored answer, by its id
	streams  atomic.Int64      // all requests
	unasked  atomic.Int64      // requests to a node that wasn't there
	lost     atomic.Int64      // streams that ended without an answer, since the node that was asked was killed
	unsaid   atomic.Int64      // of these, streams that had told nothing of the answer yet
	refused  atomic.Int64      // requests that got an error instead of an answer
}

// TestCluster_NodesAreKilled kills a random node again and again while conversations are held with all of them: what was answered is
// stored, and can be continued on every node. Only streams of the node that was killed are cut off, and no request to another gets an error.
func TestCluster_NodesAreKilled(t *testing.T) {
	t.Parallel()
	talkers, rounds, pause := 12, 3, 1500*time.Millisecond
	if os.Getenv("LMCADDY_WHOLE") != "" {
		talkers, rounds, pause = 200, 12, 5*time.Second
	}
	nodes, database := newCluster(t, 3, "")
	var current [3]atomic.Pointer[node]
	for i, n := range nodes {
		current[i].Store(n)
	}
	k := &killing{answered: map[string]string{}}
	stop := make(chan struct{})
	var talking sync.WaitGroup
	for i := range talkers {
		talking.Go(func() { k.talk(t, func() *node { return current[rand.IntN(3)].Load() }, i, stop) })
	}
	for range rounds {
		time.Sleep(pause) // of the schedule, not of a proof
		i := rand.IntN(len(nodes))
		n := current[i].Load()
		n.Kill()
		current[i].Store(launchNode(n.Home, n.port, database, ""))
	}
	close(stop)
	talking.Wait()
	last := []*node{current[0].Load(), current[1].Load(), current[2].Load()}
	awaitNodes(t, last)
	t.Logf("%d requests: %d answered, %d cut off (%d before the answer's first word), %d refused, %d to nodes that weren't there",
		k.streams.Load(), len(k.answered), k.lost.Load(), k.unsaid.Load(), k.refused.Load(), k.unasked.Load())
	if k.refused.Load() > 0 {
		t.Errorf("%d requests were refused, of which nothing had been answered", k.refused.Load())
	}
	if len(k.answered) < talkers/2 {
		t.Errorf("only %d were answered", len(k.answered))
	}
	k.checkStored(t, last)
	continued := 0
	for id := range k.answered {
		if continued++; continued > 12 {
			break
		}
		last[continued%3].NativeChat(harness.NativeAsk("Hello").After(id).With("max_output_tokens", 2))
	}
}

// count returns the number of answers so far.
func (k *killing) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.answered)
}

// checkStored fails the test unless what was answered is stored, for a random node each.
func (k *killing) checkStored(t *testing.T, nodes []*node) {
	t.Helper()
	for id, text := range k.answered {
		got := nodes[rand.IntN(len(nodes))].Get("/api/v1/responses/" + id)
		if got.Status != http.StatusOK || harness.NativeText(gjson.Parse(got.Body), "message") != text {
			t.Fatalf("%s is lost: %d %.300s, want %q", id, got.Status, got.Body, text)
		}
	}
}

// talk asks nodes, one question after the other.
func (k *killing) talk(t *testing.T, pick func() *node, talker int, stop <-chan struct{}) {
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return
		default:
		}
		k.streams.Add(1)
		body := harness.NativeAsk(fmt.Sprintf("I am talker %d, this is turn %d. Count to 5.", talker, turn)).With("max_output_tokens", 24).With("stream", true)
		reply, broke := pick().Try("/api/v1/chat", body)
		stream, err := harness.CheckNative(reply.Body)
		switch {
		case reply.Status == 0: // as clients do before they try again
			k.unasked.Add(1)
			time.Sleep(100 * time.Millisecond)
		case reply.Status == http.StatusOK && err != nil:
			if k.lost.Add(1); !strings.Contains(reply.Body, ".delta") {
				k.unsaid.Add(1)
			}
			if broke == nil { // the node that was asked has ended the stream
				t.Errorf("%v: %s", err, reply.Body)
			}
		case reply.Status != http.StatusOK || stream.Result.Get("response_id").Str == "":
			k.refused.Add(1)
			t.Logf("%d %.300s", reply.Status, reply.Body)
		default:
			k.mu.Lock()
			k.answered[stream.Result.Get("response_id").Str] = harness.NativeText(stream.Result, "message")
			k.mu.Unlock()
		}
	}
}
