package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// PostgreSQL is restarted amid requests: each of them is answered or gets 503, and after that everything is as before.
func TestCluster_TheDatabaseIsRestarted(t *testing.T) {
	t.Parallel()
	nodes, database := newCluster(t, 2, "lm_auth")
	token := created(t, nodes[0].Home, "--name", "talker", "--requests-per-minute", "100000", "--tokens-per-day", "10000000")
	limited := created(t, nodes[0].Home, "--name", "limited", "--requests-per-minute", "20")
	as := make([]*node, len(nodes))
	for i, n := range nodes {
		as[i] = &node{n.As(token), n.port}
	}
	as[0].NativeChat(harness.NativeAsk("Hello"))
	k := &killing{answered: map[string]string{}}
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() { k.askStored(t, as, i, stop) })
	}
	for range 2 {
		before := k.count()
		harness.Eventually(t, harness.Patience, "requests are answered", func() bool { return k.count() > before+8 })
		database.Restart()
	}
	restarted := time.Now()
	before := k.count()
	harness.Eventually(t, harness.Patience, "answers are stored again", func() bool { return k.count() > before+8 })
	t.Logf("answers are stored %s after the restart", time.Since(restarted).Round(time.Millisecond))
	close(stop)
	asking.Wait()
	t.Logf("%d requests: %d answered, %d refused with 503", k.streams.Load(), len(k.answered), k.refused.Load())
	awaitNodes(t, nodes)
	k.checkStored(t, as)
	ask := harness.Ask("Hello").With("max_tokens", 1)
	probes := 0
	harness.Eventually(t, harness.Patience, "the nodes count together again", func() bool {
		probes++
		probe := created(t, nodes[0].Home, "--name", fmt.Sprint("probe", probes), "--requests-per-minute", "1")
		nodes[0].As(probe).Post("/v1/chat/completions", ask).Want(t, http.StatusOK)
		return nodes[1].As(probe).Post("/v1/chat/completions", ask).Status == http.StatusTooManyRequests
	})
	wantLimited(t, nodes, limited)
}

// wantLimited fails the test unless the nodes serve 20 of 45 requests, which the token's limit permits in a minute.
func wantLimited(t *testing.T, nodes []*node, token string) {
	t.Helper()
	served := 0
	for i := range 45 {
		reply := nodes[i%len(nodes)].As(token).Post("/v1/chat/completions", harness.Ask("Hello").With("max_tokens", 1))
		if reply.Status != http.StatusTooManyRequests {
			reply.Want(t, http.StatusOK)
			served++
		}
	}
	if served != 20 {
		t.Errorf("%d requests were served", served)
	}
}

// The clocks of the nodes are an hour off that of the database: nodes find each other and are given up as always, background responses are
// finished, and limits hold.
func TestCluster_ClocksDiffer(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": -time.Hour, "behind": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := harness.StartPostgres(t, nil)
			database.SetClock(ahead)
			var nodes []*node
			for range 2 {
				nodes = append(nodes, launchNode(harness.NewHome(t), harness.FreePort(t), database, "lm_auth"))
			}
			awaitNodes(t, nodes)
			token := created(t, nodes[0].Home, "--name", "limited", "--requests-per-minute", "20")
			admin := created(t, nodes[0].Home, "--name", "admin", "--scopes", "admin")
			wantLimited(t, nodes, token)
			begun := nodes[0].As(admin).Post("/v1/responses", harness.Fields{"model": harness.Model, "input": "Count to 30.", "background": true, "temperature": 0})
			id := begun.Want(t, http.StatusOK).Get("id").Str
			harness.Eventually(t, harness.Patience, "the background response is finished, for the other node, too", func() bool {
				status := nodes[1].As(admin).Get("/v1/responses/"+id).Want(t, http.StatusOK).Get("status").Str
				if status != "queued" && status != "in_progress" && status != "completed" {
					t.Fatalf("it is %s", status)
				}
				return status == "completed"
			})
			nodes[1].Kill()
			harness.Eventually(t, harness.Patience, "the node that was killed is given up", func() bool {
				other := &node{nodes[0].As(admin), nodes[0].port}
				return nodeStatus(other, nodes[1]) == "unreachable"
			})
		})
	}
}

// askStored asks random nodes for answers that are stored, one after the other.
func (k *killing) askStored(t *testing.T, nodes []*node, talker int, stop <-chan struct{}) {
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return
		default:
		}
		k.streams.Add(1)
		reply, err := nodes[rand.IntN(len(nodes))].Try("/api/v1/chat", harness.NativeAsk(fmt.Sprintf("I am talker %d, this is turn %d. Count to 5.", talker, turn)))
		switch id := reply.Get("response_id").Str; {
		case err == nil && reply.Status == http.StatusOK && id != "":
			k.mu.Lock()
			k.answered[id] = harness.NativeText(reply.Get("@this"), "message")
			k.mu.Unlock()
		case reply.Status == http.StatusServiceUnavailable:
			k.refused.Add(1)
		default:
			t.Errorf("%d %v %.300s", reply.Status, err, reply.Body)
		}
	}
}
