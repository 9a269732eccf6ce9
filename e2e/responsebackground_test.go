package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func inBackground(request harness.Fields) harness.Fields { return request.With("background", true) }

// blocked is a background response with a tool that doesn't return until the test ends, or the call is cancelled.
type blocked struct {
	request  harness.Fields
	released chan struct{} // closed by the test to let the tool return
	ended    chan struct{} // gets a value for each call that was cancelled
}

func blockedTool(t *testing.T) *blocked {
	t.Helper()
	b := &blocked{released: make(chan struct{}), ended: make(chan struct{}, 16)}
	m := harness.StartMCP(t, statusTool(func(ctx context.Context, _ gjson.Result) string {
		select {
		case <-b.released:
		case <-ctx.Done():
			b.ended <- struct{}{}
		}
		return redRiver
	}))
	b.request = inBackground(respondWith(useStatus, remote("river", m.URL)))
	return b
}

// start begins the response, and returns its stream when the tool has been called.
func (b *blocked) start(ctx context.Context, s *harness.Server) harness.OpenResponse {
	s.T.Helper()
	st := s.OpenResponse(ctx, b.request)
	st.WaitEvent("response.mcp_call_arguments.done")
	return st
}

func (b *blocked) wantCancelled(t *testing.T) {
	t.Helper()
	harness.Wait(t, "the call of the tool is cancelled", b.ended)
}

func TestResponsesBackground_IsPolledUntilItHasEnded(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	begun := s.Respond(inBackground(harness.RespondAsk("My name is Ada.").Quick()))
	if status := begun.Get("status").Str; status != "queued" && status != "in_progress" || !begun.Get("background").Bool() {
		t.Errorf("%s", begun.Raw)
	}
	id := begun.Get("id").Str
	ended := s.Finished(id)
	if ended.Get("status").Str != "completed" || harness.ResponseText(ended) != harness.ResponseText(s.Respond(harness.RespondAsk("My name is Ada.").Quick())) {
		t.Errorf("%s", ended.Raw)
	}
	if text := harness.ResponseText(s.Finished(s.Respond(inBackground(harness.RespondAsk(whoAmI).Quick().After(id))).Get("id").Str)); text != "Your name is Ada." {
		t.Errorf("%q", text)
	}
	items := s.Get(onResponse(id, "/input_items")).Want(t, http.StatusOK)
	if items.Get("data.0.content.0.text").Str != "My name is Ada." {
		t.Errorf("%s", items.Body)
	}
	cancelled := s.Post(onResponse(id, "/cancel"), harness.Fields{}).Response(s) // of one that has ended: nothing changes
	if diff := cmp.Diff(ended.Value(), cancelled.Value()); diff != "" {
		t.Errorf("after it ended (-) and when it is cancelled then (+):\n%s", diff)
	}
	s.Do(http.MethodDelete, onResponse(id, ""), nil).Want(t, http.StatusOK)
	wantNoResponse(t, s, id)

	limited := s.Finished(s.Respond(inBackground(harness.RespondLong(30))).Get("id").Str)
	if limited.Get("status").Str != "incomplete" || limited.Get("usage.output_tokens").Int() != 30 {
		t.Errorf("%s", limited.Raw)
	}
	refused := s.Post(harness.RespondPath, inBackground(harness.RespondAsk("Hello")).With("model", "nope")).Want(t, http.StatusNotFound)
	wantOpenAIError(t, refused, "invalid_request_error", "model_not_found")
}

func TestResponsesBackground_Stream(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	request := inBackground(harness.RespondAsk(capital))
	opened := s.OpenResponse(t.Context(), request)
	st := opened.End()
	order := st.Order()
	if diff := cmp.Diff("created queued in_progress"+thoughtItem+messageItem+" completed", order); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	id := st.Final.Get("id").Str
	if diff := cmp.Diff(st.Final.Value(), s.Stored(id).Value()); diff != "" {
		t.Errorf("streamed (-) and stored (+):\n%s", diff)
	}
	// Whatever a client has lost can be picked up, also when it is over.
	for _, after := range []int{-1, 0, 5, len(st.Events) - 2} {
		var had strings.Builder
		for _, ev := range st.Events[:after+1] {
			had.WriteString(ev.Raw)
		}
		picked := s.FollowResponse(id, after).All()
		if diff := cmp.Diff(withoutComments(opened.Raw()), had.String()+withoutComments(picked)); diff != "" {
			t.Errorf("after %d, at once (-) and in two pieces (+):\n%s", after, diff)
		}
	}
	if beyond := s.FollowResponse(id, len(st.Events)+5).All(); beyond != "data: [DONE]\n\n" {
		t.Errorf("after the last event: %s", beyond)
	}
	for _, query := range []string{"?stream=true&starting_after=x", "?stream=true&starting_after=-2", "?stream=maybe"} {
		r := s.Get(onResponse(id, query))
		if r.Status != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", query, r.Status, r.Body)
		}
	}
	sync := s.Respond(harness.RespondAsk("Hello").Quick()).Get("id").Str
	if r := s.Get(onResponse(sync, "?stream=true")); r.Status != http.StatusBadRequest {
		t.Errorf("the stream of a synchronous response has the status %d: %s", r.Status, r.Body)
	}
}

func withoutComments(raw string) string {
	frames := strings.SplitAfter(raw, "\n\n")
	return strings.Join(slices.DeleteFunc(frames, func(frame string) bool { return strings.HasPrefix(frame, ":") }), "")
}

// TestResponsesBackground_ClientThatDisconnects: the response goes on, and other clients follow it while it runs.
func TestResponsesBackground_ClientThatDisconnects(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	tool := blockedTool(t)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	st := tool.start(ctx, s)
	id := st.ID()
	disconnect()
	st.WaitCut()
	had := st.Events()
	if status := s.Stored(id).Get("status").Str; status != "in_progress" {
		t.Errorf("the response is %s", status)
	}
	rest, again := s.FollowResponse(id, len(had)-1), s.FollowResponse(id, -1)
	again.WaitEvent("response.mcp_call_arguments.done")
	close(tool.released)
	var all strings.Builder
	for _, ev := range had {
		all.WriteString(ev.Raw)
	}
	all.WriteString(withoutComments(rest.All()))
	whole := again.End()
	if diff := cmp.Diff(withoutComments(again.Raw()), all.String()); diff != "" {
		t.Errorf("what one client got (-), and what two got together (+):\n%s", diff)
	}
	for _, body := range []gjson.Result{whole.Final, s.Finished(id)} {
		if text := wantServerCall(t, body, "river", "status", "{}", redRiver); text != returned+redRiver {
			t.Errorf("%q", text)
		}
	}
}

func TestResponsesBackground_Cancel(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote, Engine: []string{"parallel 1"}})
	tool := blockedTool(t)
	st := tool.start(t.Context(), s)
	engine := s.Engine()
	engine.Pause(t)
	ask := inBackground(harness.RespondAsk(capital).Quick())
	answering, waiting := s.Respond(ask).Get("id").Str, s.Respond(ask).Get("id").Str // for the only slot
	for name, id := range map[string]string{"in a tool": st.ID(), "in the engine": answering, "waiting": waiting} {
		cancelled := s.Post(onResponse(id, "/cancel"), harness.Fields{}).Response(s)
		if status := cancelled.Get("status").Str; status != "cancelled" || cancelled.Get("id").Str != id {
			t.Errorf("%s: %s", name, cancelled.Raw)
		}
		if diff := cmp.Diff(cancelled.Value(), s.Stored(id).Value()); diff != "" {
			t.Errorf("%s: the answer (-) and what is stored (+):\n%s", name, diff)
		}
		again := s.Post(onResponse(id, "/cancel"), harness.Fields{}).Response(s)
		if diff := cmp.Diff(cancelled.Value(), again.Value()); diff != "" {
			t.Errorf("%s: cancelled once (-) and again (+):\n%s", name, diff)
		}
	}
	engine.Resume(t)
	tool.wantCancelled(t)
	if end := st.End(); end.Final.Get("status").Str != "cancelled" {
		t.Errorf("its stream ends with %s", end.Final.Raw)
	}
	if text := harness.ResponseText(s.Respond(harness.RespondAsk(capital).Quick())); text != paris { // the slot is free
		t.Errorf("%q", text)
	}
}

// TestResponsesBackground_ServerThatDies: what it was running is failed when it is started again, not lost.
func TestResponsesBackground_ServerThatDies(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*harness.Server){
		"SIGKILL": func(s *harness.Server) { s.Kill() },
		"SIGTERM": func(s *harness.Server) { s.Stop(syscall.SIGTERM, harness.Patience) },
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			config := harness.Config{Port: harness.FreePort(t), Grace: "1s", LM: openRemote}
			s := harness.Start(h, config)
			kept := s.Finished(s.Respond(inBackground(harness.RespondAsk("My name is Ada.").Quick())).Get("id").Str).Get("id").Str
			id := blockedTool(t).start(t.Context(), s).ID()
			end(s)
			h.WaitNoEngine(gone)
			s = harness.Start(h, config)
			body := s.Finished(id)
			if body.Get("status").Str != "failed" || body.Get("error.code").Str != "server_error" || body.Get("error.message").Str == "" {
				t.Errorf("%s", body.Raw)
			}
			if text := harness.ResponseText(s.Respond(harness.RespondAsk(whoAmI).Quick().After(kept))); text != "Your name is Ada." {
				t.Errorf("%q", text)
			}
			s.Do(http.MethodDelete, onResponse(id, ""), nil).Want(t, http.StatusOK)
			wantNoResponse(t, s, id)
		})
	}
}

func TestResponsesBackground_EngineThatDies(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	st := s.OpenResponse(t.Context(), inBackground(harness.RespondLong(8000)))
	st.WaitEvent("response.output_text.delta")
	crashTwice(t, s)
	end := st.End()
	if diff := cmp.Diff("created queued in_progress"+messageItem+" error failed", end.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	if body := s.Finished(end.Final.Get("id").Str); body.Get("status").Str != "failed" {
		t.Errorf("%s", body.Raw)
	}
}

// TestResponsesBackground_DeletedWhileItRuns: deleting ends the work.
func TestResponsesBackground_DeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	tool := blockedTool(t)
	st := tool.start(t.Context(), s)
	id := st.ID()
	s.Do(http.MethodDelete, onResponse(id, ""), nil).Want(t, http.StatusOK)
	tool.wantCancelled(t)
	st.WaitCut()
	wantNoResponse(t, s, id) // nothing brings it back
}

// TestResponsesBackground_ServerTools: a response with MCP tools runs in the background, too.
func TestResponsesBackground_ServerTools(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	request := inBackground(respondWith(useStatus, remote("river", m.URL)))
	body := s.Finished(s.Respond(request).Get("id").Str)
	if text := wantServerCall(t, body, "river", "status", "{}", redRiver); text != returned+redRiver {
		t.Errorf("%q", text)
	}
	st := s.RespondStream(request)
	if diff := cmp.Diff("created queued in_progress"+listItem+callItem+messageItem+" completed", st.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
}
