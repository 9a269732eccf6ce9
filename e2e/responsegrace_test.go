package e2e

import (
	"context"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestResponsesBackground_GetsTheGracePeriod: the server waits for a response at its end, although no client does.
func TestResponsesBackground_GetsTheGracePeriod(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t), Grace: "60s"}
	s := harness.Start(h, config)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	st := s.OpenResponse(ctx, inBackground(harness.RespondLong(700)))
	id := st.ID()
	st.WaitEvent("response.output_text.delta")
	engine := s.Engine()
	engine.Pause(t)
	disconnect()
	st.WaitCut()
	s.Signal(syscall.SIGTERM)
	harness.Eventually(t, harness.Patience, "nobody listens any more", func() bool { return !listens(s.Base) })
	if s.HasEnded() {
		t.Fatal("the server has ended")
	}
	engine.Resume(t)
	if status := s.WaitEnd(slack); status != 0 {
		t.Errorf("status %d", status)
	}
	s = harness.Start(h, config)
	if body := s.Stored(id); body.Get("status").Str != "incomplete" || body.Get("usage.output_tokens").Int() != 700 {
		t.Errorf("%s", body.Raw)
	}
}

// TestResponsesBackground_OutlivesAReload: a response goes on under a new configuration, where it is found, streamed and cancelled.
func TestResponsesBackground_OutlivesAReload(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	st := s.OpenResponse(t.Context(), inBackground(harness.RespondLong(700)))
	id := st.ID()
	st.WaitEvent("response.output_text.delta")
	engine := s.Engine()
	engine.Pause(t)
	config.LM = []string{"reasoning_field reasoning_content"}
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	if status := s.Stored(id).Get("status").Str; status != "in_progress" {
		t.Errorf("after the reload, it is %s", status)
	}
	again := s.FollowResponse(id, -1)
	engine.Resume(t)
	if body := again.End().Final; body.Get("status").Str != "incomplete" || body.Get("usage.output_tokens").Int() != 700 {
		t.Errorf("%s", body.Raw)
	}
	if raw := st.End().Final.Get("status").Str; raw != "incomplete" {
		t.Errorf("the stream from before the reload ends with %s", raw)
	}
}
