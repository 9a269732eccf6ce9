package api

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

const v0Chat = "/api/v0/chat/completions"

func (s *server) v0(more string) answer {
	s.t.Helper()
	return s.do("POST", v0Chat, `{"model":"lmcaddy/tinychat","messages":[{"role":"user","content":"hi"}]`+more+`}`)
}

// shortContext is one that doesn't depend on the model.
func shortContext(_ *endpoint.Config, settings *node.Settings) {
	settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {ContextLength: 1024}}
}

// measured are the figures that differ from run to run.
var measured = regexp.MustCompile(`("(?:tokens_per_second|time_to_first_token|generation_time|created)":)[0-9.e+-]+|("id":"chatcmpl-)\w+`)

func TestV0Chat_OneBody(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 9, CachedTokens: 1, Answer: fakeengine.Answer{Reasoning: "Hm.", Text: "Hello there."}}}}, shortContext)
	got := s.v0("")
	want := `{"id":"chatcmpl-…","object":"chat.completion","created":…,"model":"lmcaddy/tinychat",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"Hello there.","refusal":null,"reasoning":"Hm."},"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":1}},` +
		`"system_fingerprint":"b11669","stats":{"tokens_per_second":…,"time_to_first_token":…,"generation_time":…,"stop_reason":"eosFound"},` +
		`"model_info":{"arch":"llama","quant":"F16","format":"gguf","context_length":1024},` +
		`"runtime":{"name":"llama.cpp","version":"b11669","supported_formats":["gguf"]}}`
	if diff := cmp.Diff(want, measured.ReplaceAllString(got.body, "$1$2…")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestV0Chat_TheLastChunkOfAStreamHasTheFigures(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, more := range []string{`,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`, `,"stream":true,"n":2`} {
		all := chunks(t, s.v0(more).body)
		for i, data := range all[:len(all)-1] {
			isLast := i == len(all)-2
			for _, field := range []string{"stats.stop_reason", "stats.tokens_per_second", "model_info.arch", "runtime.version"} {
				if gjson.Get(data, field).Exists() != isLast {
					t.Errorf("%s: %s of chunk %d of %d: %s", more, field, i, len(all), data)
				}
			}
		}
	}
}

func TestV0Chat_StopReasons(t *testing.T) {
	t.Parallel()
	call := fakeengine.Answer{Pieces: []string{""}, Calls: []fakeengine.ToolCall{{Name: "echo", Arguments: `{"a":1}`}}}
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "full", PromptTokens: 1019, Answer: fakeengine.Answer{Chunks: 5, Finish: "length"}},
		{Contains: "echo", Answer: call},
		{Contains: "halfway", Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Fault, Message: "Something broke."}}},
		{},
	}}, shortContext)
	for name, tt := range map[string]struct{ more, want string }{
		"its own end":              {"", "eosFound"},
		"a stop string":            {`,"stop":["fake"]`, "stopStringFound"},
		"a stop string, not met":   {`,"stop":"nowhere"`, "eosFound"},
		"the limit":                {`,"max_tokens":2`, "maxPredictedTokensReached"},
		"the limit, before a stop": {`,"max_tokens":2,"stop":["engine"]`, "maxPredictedTokensReached"},
		"the context":              {`,"chat_template_kwargs":{"case":"full"}`, "contextLengthReached"},
		"a call":                   {`,"tools":[{"type":"function","function":{"name":"echo"}}]`, "toolCalls"},
		"a failure":                {`,"chat_template_kwargs":{"case":"halfway"}`, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.v0(tt.more); tt.want == "failed" {
				if got.status != 502 || !strings.Contains(got.body, `{"error":{"type":"internal_error","message":`) {
					t.Errorf("%d %s", got.status, got.body)
				}
			} else if stop := gjson.Get(got.body, "stats.stop_reason").Str; stop != tt.want {
				t.Errorf("a body: %q\n%s", stop, got.body)
			}
			got := s.v0(tt.more + `,"stream":true`)
			all := chunks(t, strings.TrimSuffix(got.body, "data: [DONE]\n\n"))
			if stop := gjson.Get(all[len(all)-1], "stats.stop_reason").Str; stop != tt.want {
				t.Errorf("a stream: %q\n%s", stop, got.body)
			}
			if strings.Contains(got.body, "__verbose") {
				t.Errorf("what only we asked for: %s", got.body)
			}
		})
	}
}

// TestChat_VerboseNeverLeaks: not even to who asks for it.
func TestChat_VerboseNeverLeaks(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, more := range []string{`,"verbose":true`, `,"verbose":true,"stream":true`, `,"verbose":true,"stream":true,"stream_options":{"include_usage":true}`} {
		if got := s.chat(more); got.status != 200 || strings.Contains(got.body, "__verbose") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// withDraft adds a second model.
func withDraft(t *testing.T) option {
	return func(_ *endpoint.Config, settings *node.Settings) {
		dir := t.TempDir()
		link(t, shipped, filepath.Join(string(home.Dir(dir)), "lmcaddy", "tinydraft", "tinydraft-f16.gguf"))
		settings.ModelsDirs = append(settings.ModelsDirs, dir)
	}
}

func TestChat_DraftModel(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{DraftTokens: 29, DraftAccepted: 21}}}, withDraft(t))
	want := map[string]any{
		"draft_model": "lmcaddy/tinydraft", "total_draft_tokens_count": 29.0, "accepted_draft_tokens_count": 21.0,
		"rejected_draft_tokens_count": 8.0, "ignored_draft_tokens_count": 0.0, "stop_reason": "eosFound",
	}
	for _, path := range []string{v0Chat, "/v1/chat/completions"} {
		for _, more := range []string{"", `,"stream":true`} {
			got := s.do("POST", path, `{"model":"tinychat","draft_model":"tinydraft","messages":[{"role":"user","content":"hi"}]`+more+`}`)
			body := strings.TrimSuffix(got.body, "data: [DONE]\n\n")
			if more != "" {
				all := chunks(t, body)
				body = all[len(all)-1]
			}
			var stats map[string]any
			if err := json.Unmarshal([]byte(gjson.Get(body, "stats").Raw), &stats); err != nil {
				t.Fatalf("%s%s: %v: %s", path, more, err, got.body)
			}
			for _, figure := range []string{"tokens_per_second", "time_to_first_token", "generation_time"} {
				if _, ok := stats[figure].(float64); !ok {
					t.Errorf("%s%s: %s is %v", path, more, figure, stats[figure])
				}
				delete(stats, figure)
			}
			if diff := cmp.Diff(want, stats); diff != "" {
				t.Errorf("%s%s (-want +got):\n%s", path, more, diff)
			}
		}
	}
	if got := s.chat(`,"draft_model":"nope"`); got.status != 404 || !strings.Contains(got.body, `"param":"draft_model","code":"model_not_found"`) {
		t.Errorf("an unknown one: %d %s", got.status, got.body)
	}
	if got := serve(t, nil).chat(""); strings.Contains(got.body, `"stats"`) {
		t.Errorf("without one: %s", got.body)
	}
}

// TestChat_AModelThatDraftsForItself is named in version 0's figures, and in the list of instances.
func TestChat_AModelThatDraftsForItself(t *testing.T) {
	t.Parallel()
	with := func(word string) option {
		return func(_ *endpoint.Config, settings *node.Settings) {
			settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Draft: word}}
		}
	}
	const hi = `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{DraftTokens: 29, DraftAccepted: 21}}}, with("ngram-mod"))
	got := s.do("POST", v0Chat, hi).body
	if gjson.Get(got, "stats.draft_model").Str != "lmcaddy/tinychat" || gjson.Get(got, "stats.accepted_draft_tokens_count").Int() != 21 {
		t.Errorf("%s", got)
	}
	if got := s.do("POST", "/v1/chat/completions", hi).body; gjson.Get(got, "stats").Exists() {
		t.Errorf("%s", got)
	}
	if got := s.do("GET", "/api/v1/ps", "").body; gjson.Get(got, "instances.0.draft_model").Str != "lmcaddy/tinychat" {
		t.Errorf("%s", got)
	}
	if got := serve(t, nil, with("ngram-odd")).do("POST", v0Chat, hi); !strings.Contains(got.body, "which is for ngram-odd") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := serve(t, nil, with("mtp")).do("POST", v0Chat, hi); got.status != 400 || !strings.Contains(got.body, "has no layers that predict") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
