package translate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ollamaAnswer returns what clients of Ollama's API get for events, at a time that doesn't change.
func ollamaAnswer(a ollama.Answer, events []translate.Event) (dst []byte) {
	a.Model = "tinychat:latest"
	a.Now = func() time.Time { return time.Unix(1_700_000_000, 123_000_000) }
	a.Took = func() (total, load time.Duration) { return 5 * time.Second, 2 * time.Second }
	for _, ev := range events {
		if _, ok := ev.(translate.Fault); ok {
			return dst // which isn't the encoder's to tell
		}
		dst = a.Append(dst, ev)
	}
	return dst
}

func ollamaLogprobsView(t *testing.T, upstream []byte) []view {
	t.Helper()
	events := decode(t, upstream)
	return []view{
		{"ollama stream with log probabilities", ollamaAnswer(ollama.Answer{Logprobs: true}, events)},
		{"ollama body with log probabilities", line(ollamaAnswer(ollama.Answer{Logprobs: true, OnlyChosen: true, IsWhole: true}, events))},
	}
}

func ollamaGenerateView(t *testing.T, upstream []byte) []view {
	t.Helper()
	events := decode(t, upstream)
	return []view{
		{"ollama generate stream", ollamaAnswer(ollama.Answer{Generates: true}, events)},
		{"ollama generate body", line(ollamaAnswer(ollama.Answer{Generates: true, IsWhole: true}, events))},
	}
}

// TestOllama_AStreamSaysWhatABodySays: each line is an object, and together they say the same as the answer in one piece.
func TestOllama_AStreamSaysWhatABodySays(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		events := decode(t, tr.upstream)
		stream, body := ollamaAnswer(ollama.Answer{}, events), ollamaAnswer(ollama.Answer{IsWhole: true}, events)
		var content, thinking string
		var calls []string
		isDone := false
		for text := range strings.Lines(string(stream)) {
			if !json.Valid([]byte(text)) || isDone {
				t.Fatalf("%s: %q", tr.name, text)
			}
			message := gjson.Get(text, "message")
			content, thinking = content+message.Get("content").Str, thinking+message.Get("thinking").Str
			message.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
				calls = append(calls, call.Raw)
				return true
			})
			isDone = gjson.Get(text, "done").Bool()
		}
		if isDone != (len(body) > 0) {
			t.Errorf("%s: the stream ends: %v, the body: %s", tr.name, isDone, body)
		}
		if !isDone {
			continue
		}
		message := gjson.GetBytes(body, "message")
		whole := message.Get("tool_calls").Raw
		if message.Get("content").Str != content || message.Get("thinking").Str != thinking || whole != "" && whole != "["+strings.Join(calls, ",")+"]" || whole == "" && len(calls) > 0 {
			t.Errorf("%s: %s\n%s", tr.name, stream, body)
		}
	}
}

func TestOllama_ArgumentsAreAlwaysAnObject(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, ``: `{}`, `[1]`: `{"arguments":"[1]"}`, `{"a":`: `{"arguments":"{\"a\":"}`, `null`: `{"arguments":"null"}`, "{\n \"a\": \"\\n\"\n}": `{"a":"\n"}`,
	} {
		events := []translate.Event{
			translate.CallStart{Name: "f"}, translate.CallArgs{Text: args}, translate.CallDone{}, translate.Finish{Reason: translate.FinishToolCalls},
		}
		body := ollamaAnswer(ollama.Answer{IsWhole: true}, events)
		if got := gjson.GetBytes(body, "message.tool_calls.0.function.arguments").Raw; got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// ollamaBodies are seeds for fuzzing requests.
var ollamaBodies = []string{
	`{"model":"m","messages":[{"role":"user","content":"hi","images":["aGk="]}],"options":{"temperature":0.5,"stop":["a"],"seed":-5,"num_predict":-2,"num_ctx":4096.0,"mirostat":1},"format":"json","think":"low","keep_alive":"5m"}`,
	`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":[1]}}}]},{"role":"tool","tool_name":"f","content":"1"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`,
	`{"model":"m","prompt":"a","suffix":"b","raw":true,"options":{"top_k":1e2},"logprobs":true,"top_logprobs":3,"keep_alive":-1}`,
	`{"prompt":"a","system":"s","format":{"type":"object"},"context":[5000449,5972258],"stream":null,"options":null,"tools":null,"messages":null,"keep_alive":1e300}`,
	`{"prompt":"a","context":[5000449,5972514,2892322,6366754,2892322,6431322]}`,
}

// FuzzOllama checks that what an engine is sent of a request is JSON, and has no field that isn't one of a chat's.
func FuzzOllama(f *testing.F) {
	for _, body := range slices.Concat(bodies, ollamaBodies) {
		f.Add([]byte(body))
	}
	known := request.Sampling.With(caps.ChatFields)
	own := []string{"messages", "prompt", "suffix", "tools", "response_format", "reasoning_effort", "chat_template_kwargs", "logprobs", "top_logprobs", "max_tokens"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, bad := jsonbody.Scan(raw)
		if bad != nil {
			return
		}
		for _, parse := range []func(*jsonbody.Body, request.Caps) (*ollama.Request, *translate.Error){ollama.ParseChat, ollama.ParseGenerate} {
			asked, bad := parse(body, capsOf(request.Caps{Vision: true}))
			if bad != nil || asked.IsEmpty {
				continue
			}
			upstream, bad := asked.Upstream()
			if bad != nil {
				t.Fatalf("%s: %v", raw, bad)
			}
			for name, value := range upstream.All() {
				if known[string(name)] == nil && !slices.Contains(own, string(name)) || !json.Valid(value) {
					t.Errorf("%s: it has %s: %s", raw, name, value)
				}
			}
			if asked.Context < 0 || asked.KeepAlive != nil && *asked.KeepAlive < -1 {
				t.Errorf("%s: %+v", raw, asked)
			}
		}
		_, _ = ollama.WithDefaults(body, "preset", map[string]json.RawMessage{"temperature": []byte("1"), "stop": []byte(`["a"]`), "system_prompt": []byte(`"s"`)})
	})
}

func TestOllama_WithDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"temperature": []byte("0.2"), "max_tokens": []byte("9"), "system_prompt": []byte(`"Be brief."`), "reasoning_effort": []byte(`"none"`), "logit_bias": []byte(`{}`),
	}
	for body, want := range map[string]string{
		`{"preset":"p","messages":[{"role":"user","content":"a"}]}`:                                 `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"}],"options":{"num_predict":9,"temperature":0.2},"think":false}`,
		`{"messages":[{"role":"system","content":"a"}],"think":true,"options":{ "temperature":1 }}`: `{"messages":[{"role":"system","content":"a"}],"think":true,"options":{ "temperature":1 ,"num_predict":9}}`,
		`{"prompt":"a","options":{}}`:                `{"prompt":"a","options":{"num_predict":9,"temperature":0.2},"system":"Be brief.","think":false}`,
		`{"prompt":"a","system":"b","options":null}`: `{"prompt":"a","system":"b","options":{"num_predict":9,"temperature":0.2},"think":false}`,
		`{"messages":[]}`:                            `{"messages":[],"options":{"num_predict":9,"temperature":0.2},"think":false}`,
	} {
		scanned, bad := jsonbody.Scan([]byte(body))
		if bad != nil {
			t.Fatal(bad)
		}
		got, bad := ollama.WithDefaults(scanned, "preset", defaults)
		if bad != nil {
			t.Fatal(bad)
		}
		if diff := cmp.Diff(want, string(got.Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}
