package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

func TestChat_OneBody(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer:       fakeengine.Answer{Reasoning: "The user greets me.", Text: "Hello there."},
		PromptTokens: 12, CachedTokens: 3,
	}}})
	got := s.chat("")
	if got.status != 200 || got.header.Get("Content-Type") != endpoint.TypeJSON {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	body := gjson.Parse(got.body)
	for path, want := range map[string]string{
		"object":                      "chat.completion",
		"model":                       "lmcaddy/tinychat",
		"choices.#":                   "1",
		"choices.0.message.role":      "assistant",
		"choices.0.message.content":   "Hello there.",
		"choices.0.message.reasoning": "The user greets me.",
		"choices.0.finish_reason":     "stop",
		"usage.prompt_tokens":         "12",
		"usage.prompt_tokens_details.cached_tokens": "3",
		"system_fingerprint":                        "b11669",
	} {
		if got := body.Get(path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if body.Get("usage.total_tokens").Int() != body.Get("usage.prompt_tokens").Int()+body.Get("usage.completion_tokens").Int() {
		t.Errorf("the usage doesn't add up: %s", body.Get("usage"))
	}
	if !strings.HasPrefix(body.Get("id").Str, "chatcmpl-") || body.Get("choices.0.logprobs").Raw != "null" {
		t.Errorf("%s", got.body)
	}
}

func TestChat_Calls(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Pieces: []string{""}, Calls: []fakeengine.ToolCall{
		{Name: "echo", Arguments: `{"message":"hello world"}`, ID: "one"},
		{Name: "get-sum", Arguments: `{"a":1,"b":2}`, ID: "two"},
	}}}}})
	tools := `,"tools":[{"type":"function","function":{"name":"echo"}},{"type":"function","function":{"name":"get-sum"}}]`
	choice := gjson.Get(s.chat(tools).body, "choices.0")
	want := `[{"id":"one","type":"function","function":{"name":"echo","arguments":"{\"message\":\"hello world\"}"}},` +
		`{"id":"two","type":"function","function":{"name":"get-sum","arguments":"{\"a\":1,\"b\":2}"}}]`
	if diff := cmp.Diff(want, choice.Get("message.tool_calls").Raw); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if choice.Get("finish_reason").Str != "tool_calls" || choice.Get("message.content").Raw != "null" {
		t.Errorf("%s", choice)
	}
}

// chunks are the data of a stream's events.
func chunks(t *testing.T, body string) []string {
	t.Helper()
	var all []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(frame, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("not an event: %q", frame)
		}
		all = append(all, data)
	}
	return all
}

func TestChat_StreamHoldsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 5000, Answer: fakeengine.Answer{Reasoning: "I think.", Text: "So it is."}}}})
	for name, tt := range map[string]struct {
		more      string
		wantUsage bool
	}{
		"plain":      {`,"stream":true`, false},
		"usage":      {`,"stream":true,"stream_options":{"include_usage":true}`, true},
		"usage off":  {`,"stream":true,"stream_options":{"include_usage":false}`, false},
		"usage null": {`,"stream":true,"stream_options":null`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.chat(tt.more)
			if got.header.Get("Content-Type") != endpoint.TypeEvents {
				t.Errorf("header %v", got.header)
			}
			all := chunks(t, got.body)
			if all[len(all)-1] != "[DONE]" {
				t.Errorf("the last event is %q", all[len(all)-1])
			}
			var text, reasoning strings.Builder
			usage := false
			for _, data := range all[:len(all)-1] {
				chunk := gjson.Parse(data)
				if chunk.Get("prompt_progress").Exists() {
					t.Errorf("what only we asked for: %s", data)
				}
				usage = usage || chunk.Get("usage").Exists()
				text.WriteString(chunk.Get("choices.0.delta.content").Str)
				reasoning.WriteString(chunk.Get("choices.0.delta.reasoning").Str)
			}
			if text.String() != "So it is." || reasoning.String() != "I think." || usage != tt.wantUsage {
				t.Errorf("text %q, reasoning %q, usage %v", text.String(), reasoning.String(), usage)
			}
		})
	}
}

func TestChat_ReasoningGoesByTheNameThatIsSet(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Reasoning: "Hm.", Text: "Yes."}}}},
		func(_ *endpoint.Config, settings *node.Settings) { settings.ReasoningField = openai.ReasoningContent })
	if message := gjson.Get(s.chat("").body, "choices.0.message"); message.Get("reasoning_content").Str != "Hm." || message.Get("reasoning").Exists() {
		t.Errorf("%s", message)
	}
	if body := s.chat(`,"stream":true`).body; !strings.Contains(body, `"reasoning_content":`) || strings.Contains(body, `"reasoning":`) {
		t.Errorf("%s", body)
	}
}

func TestChat_ChunksArriveAsTheyAreMade(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer: fakeengine.Answer{Pieces: []string{"one", "two"}},
		Cues:   []fakeengine.Cue{{After: 1, Gate: "second"}},
	}}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "one") {
	}
	s.fake.Release("second") // only now may the engine go on: the first piece was here before the second was made
	for lines.Scan() && !strings.Contains(lines.Text(), "two") {
	}
	if err := lines.Err(); err != nil || !strings.Contains(lines.Text(), "two") {
		t.Errorf("the stream ended early: %v", err)
	}
}

func TestChat_TheEngineIsSentWhatIsKnown(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.chat(`,"temperature":0.25,"x_unknown":{"a":[1,2]},"stop":["a","b"],"ttl":60,"stream_options":{"include_usage":false}`)
	sent := s.fake.Wait(t, isAsked).Body
	want := `{"messages":[{"role":"user","content":"hi"}],"temperature":0.25,` +
		`"stream_options":{"include_usage":true},"stream":true,"return_progress":true,"timings_per_token":true,"id_slot":0}`
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChat_FaultsOfTheEngine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule       fakeengine.Rule
		status     int // of a body
		code       string
		streamCode string // empty: as the body's, before the stream began
	}{
		"context too small":    {fakeengine.Rule{PromptTokens: 1 << 20}, 400, "context_length_exceeded", ""},
		"refused":              {fakeengine.Rule{Status: 400}, 400, "invalid_value", ""},
		"fault before":         {fakeengine.Rule{Status: 500}, 502, "engine_failed", ""},
		"key refused":          {fakeengine.Rule{Status: 401}, 502, "engine_failed", ""},
		"not an error body":    {fakeengine.Rule{Status: 500, Body: "<html>"}, 502, "engine_failed", ""},
		"crash before":         {fakeengine.Rule{Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}, 400, "request_crashes_engine", ""},
		"crash in the middle":  {fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}, 400, "request_crashes_engine", "engine_failed"},
		"cut in the middle":    {fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Cut}}}, 502, "engine_failed", "engine_failed"},
		"fault in the middle":  {fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Fault}}}, 400, "context_length_exceeded", "context_length_exceeded"},
		"no end to the stream": {fakeengine.Rule{NoDone: true}, 502, "engine_failed", "engine_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{tt.rule}})
			if got := s.chat(""); got.status != tt.status || got.code() != tt.code {
				t.Errorf("a body: %d %s", got.status, got.body)
			}
			s.awaitHealth()
			got := s.chat(`,"stream":true`)
			if got.status != 200 {
				if got.status != tt.status || got.code() != tt.code {
					t.Errorf("before a stream: %d %s", got.status, got.body)
				}
				return
			}
			all := chunks(t, got.body)
			last := answer{body: all[len(all)-1]}
			if last.code() != tt.streamCode {
				t.Errorf("in a stream: %s", last.body)
			}
			if !isWholeError(last.body) {
				t.Errorf("an error of OpenAI's has four keys: %s", last.body)
			}
		})
	}
}

// awaitHealth waits until no dead instance is taken for a living one.
func (s *server) awaitHealth() {
	s.t.Helper()
	isDead := func(in supervisor.Info) bool { return !fakeengine.Alive(in.PID) }
	testkit.Eventually(s.t, "no dead instance is listed", func() bool { return !slices.ContainsFunc(s.node.Overview().Instances, isDead) })
}

func TestChat_AnEngineThatHasDiedIsReplacedUnnoticed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for range 3 { // after more of them in a row it would have to wait
		if got := s.chat(""); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		engine, err := os.FindProcess(s.node.Overview().Instances[0].PID)
		if err == nil {
			err = engine.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func isWholeError(body string) bool {
	var e struct {
		Error map[string]json.RawMessage `json:"error"`
	}
	if json.Unmarshal([]byte(body), &e) != nil {
		return false
	}
	for _, key := range []string{"message", "type", "param", "code"} {
		if _, ok := e.Error[key]; !ok {
			return false
		}
	}
	return len(e.Error) == 4
}

func TestChat_AClientThatGoesFreesTheEngine(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{"stream": `,"stream":true`, "body": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 1, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Hang}}}}},
				func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 1) })
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions",
				strings.NewReader(`{"model":"tinychat","messages":[{"role":"user","content":"hi"}]`+stream+`}`))
			if err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if resp, err := s.Client().Do(req); err == nil {
					_ = resp.Body.Close()
				}
			}()
			s.fake.Wait(t, fakeengine.Is(fakeengine.Serving))
			cancel()
			<-gone
			s.fake.Wait(t, fakeengine.Is(fakeengine.Cancelled))
			if got := s.chat(""); got.status != 200 {
				t.Errorf("the next request: %d %s", got.status, got.body)
			}
		})
	}
}

// TestChat_CustomTools: a custom tool's call has its input, whichever way the answer goes.
func TestChat_CustomTools(t *testing.T) {
	t.Parallel()
	calls := []fakeengine.ToolCall{{Name: "patch", Arguments: `{"input":"*** Begin\n\"é\""}`, ID: "c1"}}
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: `"patch"`, Answer: fakeengine.Answer{Calls: calls}}}})
	const tools = `,"tools":[{"type":"custom","custom":{"name":"patch"}}]`
	const want = "*** Begin\n\"é\""
	call := gjson.Get(s.chat(tools).body, "choices.0.message.tool_calls.0")
	if call.Get("type").Str != "custom" || call.Get("custom.input").Str != want || call.Get("function").Exists() {
		t.Errorf("%s", call)
	}
	input := ""
	for line := range strings.Lines(s.chat(tools + `,"stream":true`).body) {
		call := gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.tool_calls.0")
		if call.Get("function").Exists() {
			t.Errorf("%s", line)
		}
		input += call.Get("custom.input").Str
	}
	if input != want {
		t.Errorf("the stream has %q", input)
	}
	got := s.do("POST", "/v1/responses", `{"model":"tinychat","input":"hi","tools":[{"type":"custom","name":"patch"}]}`)
	if call := gjson.Get(got.body, "output.0"); call.Get("type").Str != "custom_tool_call" || call.Get("input").Str != want || call.Get("call_id").Str != "c1" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
