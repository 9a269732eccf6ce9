package e2e

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// wantSaid checks an answer's message, and returns the response's id.
func wantSaid(t testing.TB, body gjson.Result, want string) (id string) {
	t.Helper()
	if got := harness.NativeText(body, "message"); got != want {
		t.Errorf("%q, want %q: %s", got, want, body.Raw)
	}
	return body.Get("response_id").Str
}

const whoAmI = "What is my name?"

func TestNativeChat_ConversationsGoOnBranchAndOutliveARestart(t *testing.T) {
	t.Parallel()
	overEngines(t, conversationsGoOn)
}

func conversationsGoOn(t *testing.T, e engine) {
	home := e.home(t)
	s := harness.Start(home, e.with(harness.Config{}))
	first := wantSaid(t, s.NativeChat(harness.NativeAsk("My name is Ada.")), "Nice to meet you, Ada!")
	ada := wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(first)), "Your name is Ada.")
	bob := wantSaid(t, s.NativeChat(harness.NativeAsk("My name is Bob.").After(first)), "Nice to meet you, Bob!")
	wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(bob)), "Your name is Bob.")
	wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(ada)), "Your name is Ada.") // the branch hasn't changed it
	if status := s.Stop(syscall.SIGINT, harness.Patience); status != 0 {
		t.Errorf("status %d", status)
	}

	s = harness.Start(home, e.with(harness.Config{}))
	wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(first)), "Your name is Ada.")
	wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(ada)), "Your name is Ada.")
	stored := wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(bob)), "Your name is Bob.")
	reply := s.Get(harness.ResponsesPath+stored).Want(t, http.StatusOK)
	for key, want := range map[string]any{
		"response_id": stored, "previous_response_id": bob, "model": harness.Model, "status": "completed",
		"input": []any{map[string]any{"type": "message", "content": whoAmI}},
	} {
		if diff := cmp.Diff(want, reply.Get(key).Value()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	s.Do(http.MethodDelete, harness.ResponsesPath+first, nil).Want(t, http.StatusOK)
	wantSaid(t, s.NativeChat(harness.NativeAsk(whoAmI).After(bob)), "Your name is Bob.") // responses that continue a deleted one stay
	gone := s.Post(harness.NativeChatPath, harness.NativeAsk(whoAmI).After(first)).Want(t, http.StatusNotFound)
	if code := gone.Get("error.code").Str; code != "previous_response_not_found" {
		t.Errorf("a deleted one: %s", gone.Body)
	}
}

// The orders of a stream's events.
const (
	loadEvents    = " model_load.start model_load.end"
	promptEvents  = " prompt_processing.start prompt_processing.end"
	thoughtEvents = " reasoning.start reasoning.delta+ reasoning.end"
	messageEvents = " message.start message.delta+ message.end"
)

func TestNativeChat_EventOrder(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, nativeChatEventOrder)
}

func nativeChatEventOrder(t *testing.T, s *harness.Server) {
	for _, tt := range []struct {
		name      string
		reasoning string
		unload    bool
		order     string
	}{
		{"first, thinking", "on", false, loadEvents + promptEvents + thoughtEvents + messageEvents},
		{"loaded, thinking", "on", false, promptEvents + thoughtEvents + messageEvents},
		{"loaded, not thinking", "off", false, promptEvents + messageEvents},
		{"loaded, as the model likes", "", false, promptEvents + thoughtEvents + messageEvents},
		{"unloaded, not thinking", "off", true, loadEvents + promptEvents + messageEvents},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := s.In(t)
			if tt.unload {
				wantUnloaded(t, s, harness.Model)
			}
			request := harness.NativeAsk(count)
			if tt.reasoning != "" {
				request["reasoning"] = tt.reasoning
			}
			st := s.NativeStream(request)
			if diff := cmp.Diff("chat.start"+tt.order+" chat.end", st.Order()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if said := st.Text("message"); said != counted {
				t.Errorf("%q", said)
			}
			body := s.NativeChat(request)
			if diff := cmp.Diff(body.Get("output").Value(), st.Result.Get("output").Value()); diff != "" {
				t.Errorf("in one piece (-) and at the end of the stream (+):\n%s", diff)
			}
			for _, stat := range []string{"input_tokens", "total_output_tokens", "reasoning_output_tokens"} {
				if one, other := body.Get("stats."+stat).Int(), st.Result.Get("stats."+stat).Int(); one != other {
					t.Errorf("%s: %d in one piece, %d streamed", stat, one, other)
				}
			}
		})
	}
}

func TestNativeChat_PromptsHaveProgress(t *testing.T) {
	t.Parallel()
	overEngines(t, promptsHaveProgress)
}

func promptsHaveProgress(t *testing.T, e engine) {
	s := e.start(t, harness.Config{Engine: []string{e.steps}})
	words := ""
	for range 300 {
		words += "red river "
	}
	st := s.NativeStream(harness.NativeAsk("Say: "+words).With("max_output_tokens", 4))
	between := 0
	for _, ev := range st.Events {
		if p := ev.Data.Get("progress").Num; ev.Type == "prompt_processing.progress" && p > 0 && p < 1 {
			between++
		}
	}
	if between < 5 {
		t.Errorf("%d steps between the beginning and the end of the prompt", between)
	}
}

// TestNativeChat_AnEngineThatDies is replaced: the stream pauses, and its events stay in order.
func TestNativeChat_AnEngineThatDies(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, nativeChatAnEngineThatDies)
}

func nativeChatAnEngineThatDies(t *testing.T, s *harness.Server) {
	for _, tt := range []struct{ reasoning, until, order string }{
		{"off", "message.delta", loadEvents + promptEvents + messageEvents},
		{"on", "reasoning.delta", loadEvents + promptEvents + thoughtEvents},
	} {
		t.Run("reasoning "+tt.reasoning, func(t *testing.T) {
			s := s.In(t)
			request := harness.NativeLong(700).With("reasoning", tt.reasoning)
			if tt.reasoning == "on" { // it can't end its thinking either
				request["logit_bias"] = []any{[]any{758, false}, []any{760, false}}
			}
			open := s.OpenNative(request)
			open.WaitFor(tt.until)
			engine := s.Engine()
			engine.Kill(t)
			st := open.End()
			if diff := cmp.Diff("chat.start"+tt.order+" chat.end", st.Order()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := st.Result.Get("stats.total_output_tokens").Int(); st.Fault.Exists() || n != 700 {
				t.Errorf("%d tokens, fault %s", n, st.Fault.Raw)
			}
			id := st.Result.Get("response_id").Str
			stored := s.Get(harness.ResponsesPath+id).Want(t, http.StatusOK)
			if diff := cmp.Diff(st.Result.Get("output").Value(), stored.Get("output").Value()); diff != "" || stored.Get("status").Str != "incomplete" {
				t.Errorf("stored as %q (-told +stored):\n%s", stored.Get("status").Str, diff)
			}
			wantSaid(t, s.NativeChat(harness.NativeAsk(capital)), paris) // from a new engine
			wantUnloaded(t, s, harness.Model)
		})
	}
}
