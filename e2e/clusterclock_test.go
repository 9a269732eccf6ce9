//go:build clock

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// One node's clock is an hour off that of the others, and of the database: its requests are counted and passed on, its conversations go on, and
// nobody gives anybody up. LMCADDY_CLOCK_BIN is the program that tools/clock.sh makes.
func TestCluster_ANodesClockIsWrong(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			database := harness.StartPostgres(t, nil)
			var nodes []*node
			for i := range 3 {
				home := harness.NewHome(t)
				if i == 1 {
					home.Binary = os.Getenv("LMCADDY_CLOCK_BIN")
					home.Env = append(home.Env, fmt.Sprintf("LMCADDY_TEST_CLOCK=%d", int(off.Seconds())))
				}
				nodes = append(nodes, launchNode(home, harness.FreePort(t), database, "lm_auth"))
			}
			wrong := nodes[1]
			awaitNodes(t, nodes)
			admin := created(t, nodes[0].Home, "--name", "admin", "--scopes", "admin")
			as := make([]*node, len(nodes))
			for i, n := range nodes {
				as[i] = &node{n.As(admin), n.port}
			}
			told, err := time.Parse(time.RFC3339, as[1].Get("/api/v1/ps").Get("time").Str)
			if err != nil || (time.Until(told)-off).Abs() > time.Minute {
				t.Fatalf("its time is %s: %v", told, err)
			}
			wantLimited(t, nodes, created(t, nodes[0].Home, "--name", "limited", "--requests-per-minute", "20"))
			wantDayLimited(t, nodes, created(t, wrong.Home, "--name", "daily", "--tokens-per-day", "2000"), 2000)
			first := as[1].NativeChat(harness.NativeAsk("My name is Ada.")).Get("response_id").Str
			for _, n := range []*node{as[0], as[2], as[1]} {
				next := n.NativeChat(harness.NativeAsk(whoAmI).After(first))
				if text := harness.NativeText(next, "message"); !strings.Contains(text, "Ada") {
					t.Errorf("%s: %q", n.name(), text)
				}
			}
			if on := len(loadedOn(nodes)); on != 1 {
				t.Errorf("%d nodes have loaded the model", on)
			}
			for _, n := range nodes {
				if strings.Contains(n.Log(), "can't be reached") || strings.Contains(n.Log(), "has left the cluster") {
					t.Errorf("%s has given a node up", n.name())
				}
			}

			database.Kill() // tokens that were seen go on
			for range 2 {
				for _, n := range as {
					n.Post("/v1/chat/completions", harness.Ask("Hello").With("max_tokens", 2)).Want(t, http.StatusOK)
				}
			}
			database.Start()
			harness.Eventually(t, harness.Patience, "answers are stored again", func() bool {
				return as[0].Post("/api/v1/chat", harness.NativeAsk("Hello").With("max_output_tokens", 2)).Status == http.StatusOK
			})
			awaitNodes(t, nodes)

			stream := as[1].OpenResponse(t.Context(), harness.RespondLong(8000))
			stream.WaitEvent("response.output_text.delta")
			id := stream.ID()
			wrong.Kill()
			as[0].Respond(harness.RespondAsk("Hello").Quick().After(id))
			if body := as[2].Stored(id); body.Get("status").Str != "failed" {
				t.Errorf("%s", body.Raw)
			}
		})
	}
}
