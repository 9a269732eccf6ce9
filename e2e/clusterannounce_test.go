package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A node is killed in the middle of streams whose clients have seen the ids of the responses: the other nodes know them, and continue their
// conversations.
func TestCluster_IDsThatWereSeenAreKnown(t *testing.T) {
	t.Parallel()
	nodes, database := newCluster(t, 3, "")
	first := nodes[0].Respond(harness.RespondAsk("My name is Ada.").Quick()).Get("id").Str
	door := nodes[1]
	response := door.OpenResponse(t.Context(), harness.RespondLong(8000).With("previous_response_id", first))
	response.WaitEvent("response.output_text.delta")
	id := response.ID()
	chat := door.OpenNative(harness.NativeLong(8000).With("store_partial", true))
	chat.WaitFor("message.delta")
	_, begin, _ := strings.Cut(chat.Raw(), "data: ")
	told := gjson.Get(begin, "response_id").Str
	if status := nodes[2].Stored(id).Get("status").Str; status != "in_progress" {
		t.Errorf("it is %s", status)
	}
	home, port := door.Home, door.port
	door.Kill()
	begun := time.Now()
	for _, n := range []*node{nodes[0], nodes[2]} {
		next := n.Respond(harness.RespondAsk(whoAmI).Quick().After(id))
		if text := harness.ResponseText(next); text != "Your name is Ada." {
			t.Errorf("%s: %q", n.name(), text)
		}
		n.NativeChat(harness.NativeAsk("Hello").After(told).With("max_output_tokens", 2))
		if body := n.Stored(id); body.Get("status").Str != "failed" || body.Get("error.message").Str == "" {
			t.Errorf("%s: %s", n.name(), body.Raw)
		}
	}
	t.Logf("continued %s after the node was killed", time.Since(begun).Round(time.Millisecond))
	again := launchNode(home, port, database, "")
	awaitNodes(t, []*node{nodes[0], again, nodes[2]})
	again.Get(onResponse(id, "/input_items")).Want(t, http.StatusOK)
}
