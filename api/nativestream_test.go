package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestNativeStream_OfAModelThatIsLoadedForIt(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{
		Load:  fakeengine.Load{Steps: 4, Gate: "load"},
		Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Reasoning: "Hm, well.", Text: "Hello there."}}},
	})
	st := s.nativeStream("hi", "")
	for { // three of four steps are before the gate
		if p := st.until("model_load.progress").data; p.Get("progress").Num >= 0.75 {
			break
		}
	}
	s.fake.Release("load")
	loaded := st.until("model_load.end").data.Get("load_time_seconds").Num
	order, _, result := st.rest()
	wantOrder(t, order, strings.TrimSpace(nativePrompt+nativeThoughts+nativeMessage+" chat.end"))
	if stats := result.Get("stats"); loaded <= 0 || stats.Get("model_load_time_seconds").Num != loaded || stats.Get("reasoning_output_tokens").Int() != 2 {
		t.Errorf("loaded in %v s: %s", loaded, result.Raw)
	}
	if first := result.Get("stats.time_to_first_token_seconds").Num; first < loaded {
		t.Errorf("the first token came after %v s, but the load that it waited for took %v", first, loaded)
	}
	order, _, _ = s.nativeStream("hi", "").rest()
	wantOrder(t, order, "chat.start"+nativePrompt+nativeThoughts+nativeMessage+" chat.end")
}

// TestNativeStream_TwoWaitForOneLoad: who waits for another's load sees it, too.
func TestNativeStream_TwoWaitForOneLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}})
	first, second := s.nativeStream("one", ""), s.nativeStream("two", "")
	s.fake.Release("load")
	for _, st := range []*nativeStream{first, second} {
		order, _, result := st.rest()
		wantOrder(t, order, "chat.start"+nativeLoaded+nativePrompt+nativeMessage+" chat.end")
		if !result.Get("stats.model_load_time_seconds").Exists() {
			t.Errorf("%s", result.Raw)
		}
	}
}

func TestNativeStream_AnEngineThatDiesBeforeItsAnswerIsReplacedUnseen(t *testing.T) {
	t.Parallel()
	crash := fakeengine.Rule{PromptTokens: 10, Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}
	silent := fakeengine.Rule{Nth: 2, PromptTokens: 10, Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}
	t.Run("the first request", func(t *testing.T) {
		t.Parallel()
		s := serve(t, firstProcess(crash))
		order, fault, result := s.nativeStream("hi", "").rest()
		wantOrder(t, order, "chat.start"+nativeLoaded+nativePrompt+nativeMessage+" chat.end")
		if fault.Exists() || said(result) != healthy || s.requests() != 2 || !result.Get("stats.model_load_time_seconds").Exists() {
			t.Errorf("%s, %s, %d requests", fault.Raw, result.Raw, s.requests())
		}
	})
	t.Run("a later one", func(t *testing.T) {
		t.Parallel()
		s := serve(t, firstProcess(silent))
		s.native("hi", "")
		order, fault, result := s.nativeStream("hi", "").rest()
		wantOrder(t, order, "chat.start"+nativePrompt+nativeMessage+" chat.end")
		if fault.Exists() || said(result) != healthy || result.Get("stats.model_load_time_seconds").Exists() {
			t.Errorf("%s, %s", fault.Raw, result.Raw)
		}
	})
	t.Run("in one piece, amid the answer", func(t *testing.T) {
		t.Parallel()
		s := serve(t, firstProcess(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}))
		if got := s.native("hi", ""); got.status != 200 || said(gjson.Parse(got.body)) != healthy || s.stored() != 1 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// TestNativeStream_FaultsAreToldInOrder: what there is comes with the end, and goes on where it stopped.
func TestNativeStream_FaultsAreToldInOrder(t *testing.T) {
	t.Parallel()
	amid := func(do fakeengine.Action) fakeengine.Rule {
		return fakeengine.Rule{Times: 1, Answer: fakeengine.Answer{Reasoning: "Hm.", Text: "One two three"}, Cues: []fakeengine.Cue{
			{After: 2, Do: do, Bytes: []byte("data: [1]\n\n")},
		}}
	}
	both := fakeengine.Rule{Contains: "fault", Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}
	for name, tt := range map[string]struct {
		script     *fakeengine.Script
		order      string // between the load and the error
		kind, code string
		output     string
	}{
		"crash":       {noSecond(amid(fakeengine.Crash)), nativeThoughts + nativeMessage, "internal_error", "engine_failed", `[{"type":"reasoning","content":"Hm."},{"type":"message","content":"One"}]`},
		"cut":         {firstProcess(refusal, amid(fakeengine.Cut)), nativeThoughts + nativeMessage, "internal_error", "engine_failed", `[{"type":"reasoning","content":"Hm."},{"type":"message","content":"One"}]`},
		"nonsense":    {firstProcess(amid(fakeengine.Garbage)), nativeThoughts + nativeMessage, "internal_error", "engine_failed", `[{"type":"reasoning","content":"Hm."},{"type":"message","content":"One"}]`},
		"a fault":     {firstProcess(amid(fakeengine.Fault)), nativeThoughts + nativeMessage, "invalid_request", "context_length_exceeded", `[{"type":"reasoning","content":"Hm."},{"type":"message","content":"One"}]`},
		"a stall":     {firstProcess(amid(fakeengine.Hang)), nativeThoughts + nativeMessage, "internal_error", "engine_stalled", `[{"type":"reasoning","content":"Hm."},{"type":"message","content":"One"}]`},
		"twice dead":  {&fakeengine.Script{Rules: []fakeengine.Rule{both}}, nativePrompt, "invalid_request", "request_crashes_engine", `[]`},
		"first stall": {firstProcess(fakeengine.Rule{Contains: "fault", Cues: []fakeengine.Cue{{Do: fakeengine.Hang}}}), nativePrompt, "internal_error", "engine_stalled", `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.script).stallSoon()
			order, fault, result := s.nativeStream("fault", `,"temperature":1`).rest()
			want := "chat.start" + nativeLoaded + nativePrompt
			if tt.output != "[]" {
				want += tt.order
			}
			wantOrder(t, order, want+" error chat.end")
			if fault.Get("type").Str != tt.kind || fault.Get("code").Str != tt.code || result.Get("output").Raw != tt.output {
				t.Errorf("%s, %s", fault.Raw, result.Raw)
			}
			if stats := result.Get("stats"); tt.output != "[]" && (stats.Get("input_tokens").Int() == 0 || stats.Get("total_output_tokens").Int() != 2 ||
				stats.Get("reasoning_output_tokens").Int() != 1 || stats.Get("time_to_first_token_seconds").Num <= 0 || stats.Get("tokens_per_second").Num <= 0) {
				t.Errorf("what is known isn't told: %s", stats.Raw)
			}
			id := result.Get("response_id").Str
			if (id != "") != (tt.output != "[]") {
				t.Fatalf("%s", result.Raw)
			}
			if id == "" {
				return
			}
			s.awaitHealth()
			if got := s.native("more", `,"previous_response_id":"`+id+`"`); got.status != 200 || said(gjson.Parse(got.body)) != healthy {
				t.Errorf("going on: %d %s", got.status, got.body)
			}
			sent := s.sent()
			const messages = `[{"role":"user","content":"fault"},{"role":"assistant","content":"One"},{"role":"user","content":"more"}]`
			if got := gjson.Get(sent[len(sent)-1], "messages").Raw; got != messages {
				t.Errorf("going on, the engine is sent %s", got)
			}
		})
	}
}

func TestNativeStream_ALoadThatFailsIsToldInTheStream(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load", Fail: fakeengine.LoadError("unknown model architecture: 'foobar'")}})
	st := s.nativeStream("hi", "") // its header comes with chat.start
	s.fake.Release("load")
	order, fault, result := st.rest()
	wantOrder(t, order, "chat.start model_load.start error chat.end")
	if fault.Get("type").Str != "internal_error" || fault.Get("code").Str != "model_load_failed" || !strings.Contains(fault.Get("message").Str, "foobar") {
		t.Errorf("%s", fault.Raw)
	}
	const want = `{"model_instance_id":"lmcaddy/tinychat","output":[],"stats":{"input_tokens":0,"total_output_tokens":0,"reasoning_output_tokens":0,` +
		`"tokens_per_second":0,"time_to_first_token_seconds":0}}`
	if result.Raw != want || s.stored() != 0 {
		t.Errorf("%s", result.Raw)
	}
	if got := s.native("hi", ""); got.status != 503 || got.code() != "model_load_failed" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// overflowing is a request that the engine refuses, since its prompt is too long.
var overflowing = fakeengine.Rule{Contains: "overflow", PromptTokens: 1 << 20}

func TestNativeStream_ARefusalBeforeItsStartIsAStatus(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{overflowing}})
	s.native("hi", "")
	for _, stream := range []string{"", `,"stream":true`} {
		got := s.native("overflow", stream)
		if got.status != 400 || got.code() != "context_length_exceeded" || gjson.Get(got.body, "error.param").Str != "input" ||
			got.header.Get("Content-Type") != endpoint.TypeJSON {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
	if n := s.stored(); n != 1 {
		t.Errorf("%d turns are stored", n)
	}
}

func TestNativeStream_ARefusalAfterALoadIsAnEvent(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}, Rules: []fakeengine.Rule{overflowing}})
	st := s.nativeStream("overflow", "")
	st.until("model_load.start")
	s.fake.Release("load")
	order, fault, result := st.rest()
	if !strings.HasSuffix(order, "model_load.end error chat.end") || !result.Get("stats.model_load_time_seconds").Exists() || fault.Get("param").Str != "input" || result.Get("response_id").Exists() {
		t.Errorf("%s: %s, %s", order, fault.Raw, result.Raw)
	}
}

// TestNativeStream_ALoadEndsWhenItDoes: also for a request whose slot is another's for a while.
func TestNativeStream_ALoadEndsWhenItDoes(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}, Rules: []fakeengine.Rule{{Contains: "long", Gate: "prompt"}}}, keepAliveSoon)
	first := s.nativeStream("long", "")
	first.until("model_load.start")
	second := s.nativeStream("hi", "")
	second.until("model_load.start")
	s.fake.Release("load")
	loaded := second.until("model_load.end").data.Get("load_time_seconds").Num
	if slices.ContainsFunc(s.fake.Events(), fakeengine.Is(fakeengine.Cancelled)) {
		t.Error("it was told when the slot was free")
	}
	s.fake.Release("prompt")
	order, _, result := second.rest()
	wantOrder(t, order, strings.TrimSpace(nativePrompt+nativeMessage+" chat.end"))
	if got := result.Get("stats.model_load_time_seconds").Num; got != loaded {
		t.Errorf("the load took %v, then %v s", loaded, got)
	}
	first.rest()
}

func keepAliveSoon(c *endpoint.Config, settings *node.Settings) {
	c.KeepAlive = 10 * time.Millisecond
	inParallel(settings, 1)
}

func TestNativeStream_CommentsBreakALongSilence(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{overflowing, {Contains: "long", Gate: "prompt", Cues: []fakeengine.Cue{{After: 1, Gate: "text"}}}}}, keepAliveSoon)
	s.native("hi", "")
	first := s.nativeStream("long", "")
	first.until("prompt_processing.start")
	first.until(":")
	queued := s.nativeStream("hi", "") // the header comes with the first comment
	refused := s.nativeStream("overflow", "")
	s.fake.Release("prompt")
	first.until("message.delta")
	first.until(":")
	s.fake.Release("text")
	order, _, _ := first.rest()
	wantOrder(t, order, "message.delta message.end chat.end")
	order, _, _ = queued.rest()
	wantOrder(t, order, "chat.start"+nativePrompt+nativeMessage+" chat.end")
	order, fault, _ := refused.rest()
	wantOrder(t, order, "chat.start error chat.end")
	if fault.Get("code").Str != "context_length_exceeded" {
		t.Errorf("%s", fault.Raw)
	}
}

// TestNativeStream_AClientThatGoesFreesTheEngine: at any stage.
func TestNativeStream_AClientThatGoesFreesTheEngine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule fakeengine.Rule
		at   string
	}{
		"amid the prompt": {fakeengine.Rule{Nth: 1, Gate: "never"}, "prompt_processing.start"},
		"amid the answer": {fakeengine.Rule{Nth: 1, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Hang}}}, "message.delta"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{tt.rule}}, keepAliveSoon)
			st := s.nativeStream("hi", "")
			st.until(tt.at)
			_ = st.resp.Body.Close()
			s.fake.Wait(t, fakeengine.Is(fakeengine.Cancelled))
			if got := s.native("hi", ""); got.status != http.StatusOK {
				t.Errorf("the next request: %d %s", got.status, got.body)
			}
			if n := s.stored(); n != 1 {
				t.Errorf("%d turns are stored", n)
			}
		})
	}
}
