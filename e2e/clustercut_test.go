package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// nodePort is the port of each node that is in a namespace of its own.
const nodePort = 1234

// newSpreadCluster is newCluster with a namespace for each node, and one for the database.
func newSpreadCluster(t *testing.T, number int) (nodes []*node) {
	t.Helper()
	network := harness.NewNetwork(t)
	database := harness.StartPostgres(t, network.Hub())
	for range number {
		home := harness.NewHome(t)
		home.Net = network.Join()
		nodes = append(nodes, launchNode(home, nodePort, database, ""))
	}
	awaitNodes(t, nodes)
	return nodes
}

// A node that runs a model is cut off from the others and from the database amid streams, and nobody is told: they give it up, go on without it, and
// take it back.
func TestCluster_ANodeIsCutOff(t *testing.T) {
	t.Parallel()
	harness.Networked(t, func(t *testing.T) {
		talkers, lasting := 2, time.Second
		if os.Getenv("LMCADDY_WHOLE") != "" {
			talkers, lasting = 200, 10*time.Second
		}
		nodes := newSpreadCluster(t, 3)
		stored := nodes[0].NativeChat(harness.NativeAsk("My name is Ada.")).Get("response_id").Str
		there := loadedOn(nodes)[0]
		var others []*node
		for _, n := range nodes {
			if n != there {
				others = append(others, n)
			}
		}
		k := &killing{answered: map[string]string{}}
		stop := make(chan struct{})
		var talking sync.WaitGroup
		for i := range talkers {
			talking.Go(func() { k.talk(t, func() *node { return others[rand.IntN(2)] }, i, stop) })
		}
		harness.Eventually(t, harness.Patience, "answers come through the other nodes", func() bool { return k.count() > talkers })

		there.Net.Cut()
		begun := time.Now()
		for _, n := range others {
			harness.Eventually(t, time.Minute, "the node is given up", func() bool { return nodeStatus(n, there) == "unreachable" })
		}
		t.Logf("given up after %s", time.Since(begun).Round(time.Millisecond))
		before := k.count()
		harness.Eventually(t, harness.Patience, "the others answer without it", func() bool { return k.count() > before+talkers })
		t.Logf("answered by others after %s", time.Since(begun).Round(time.Millisecond))
		if text := there.Chat(harness.Ask("What is the capital of France?")).Content; !strings.Contains(text, "Paris") {
			t.Errorf("those that reach the node that is cut off get %q", text)
		}
		asked := time.Now()
		there.Post("/api/v1/chat", harness.NativeAsk("What is my name?").After(stored)).Want(t, http.StatusServiceUnavailable)
		t.Logf("refused after %s", time.Since(asked).Round(time.Millisecond))
		time.Sleep(lasting) // of the schedule, not of a proof

		there.Net.Mend()
		mended := time.Now()
		awaitNodes(t, nodes)
		t.Logf("reached again after %s", time.Since(mended).Round(time.Millisecond))
		close(stop)
		talking.Wait()
		t.Logf("%d requests: %d answered, %d cut off, %d refused", k.streams.Load(), len(k.answered), k.lost.Load(), k.refused.Load())
		if k.unasked.Load() > 0 || k.refused.Load() > 0 {
			t.Errorf("%d requests to nodes that weren't cut off failed, and %d were refused", k.unasked.Load(), k.refused.Load())
		}
		if most := int64(talkers); k.lost.Load() > most {
			t.Errorf("%d streams broke off, where %d were under way", k.lost.Load(), most)
		}
		k.checkStored(t, nodes)
		for _, n := range nodes {
			answer := n.NativeChat(harness.NativeAsk("What is my name?").After(stored))
			if text := harness.NativeText(answer, "message"); !strings.Contains(text, "Ada") {
				t.Errorf("%s: %q", n.name(), text)
			}
		}
	})
}

// nodeStatus returns the status of a node as another one sees it.
func nodeStatus(n, other *node) string {
	return n.Get("/api/v1/ps").Get(fmt.Sprintf(`nodes.#(name==%q).status`, other.name())).Str
}
