package e2e

import (
	"net/http"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A server is killed in the middle of a stream whose client has seen the id: after the next start, the response has failed, and can be continued.
func TestResponses_AnIDThatWasSeenOutlivesTheServer(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(h, config)
	first := s.Respond(harness.RespondAsk("My name is Ada.").Quick()).Get("id").Str
	stream := s.OpenResponse(t.Context(), harness.RespondLong(8000).After(first))
	stream.WaitEvent("response.output_text.delta")
	id := stream.ID()
	s.Kill()
	h.WaitNoEngine(gone)
	s = harness.Start(h, config)
	if body := s.Stored(id); body.Get("status").Str != "failed" || body.Get("error.message").Str == "" {
		t.Errorf("%s", body.Raw)
	}
	items := s.Get(onResponse(id, "/input_items")).Want(t, http.StatusOK)
	if text := items.Get("data.0.content.0.text").Str; text != "Count to 30" {
		t.Errorf("%s", items.Body)
	}
	if text := harness.ResponseText(s.Respond(harness.RespondAsk(whoAmI).Quick().After(id))); text != "Your name is Ada." {
		t.Errorf("%q", text)
	}
}
