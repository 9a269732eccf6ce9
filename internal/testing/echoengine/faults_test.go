package echoengine_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What the engine can't do is refused with a reason, in each dialect's form, and before anything is loaded.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	const schema = `"schema":{"type":"object"}`
	for name, tt := range map[string]struct{ path, body, want string }{
		"completions":        {"/v1/completions", `{"model":"canyon","prompt":"hi"}`, "completes no texts: use /v1/chat/completions"},
		"v0 completions":     {"/api/v0/completions", `{"model":"canyon","prompt":"hi"}`, "completes no texts: use /v1/chat/completions"},
		"count of tokens":    {"/v1/messages/count_tokens", `{"model":"canyon",` + hi + `}`, "counts no tokens without answering"},
		"rerank":             {"/v1/rerank", `{"model":"ruler","query":"a","documents":["b"]}`, "is no reranker"},
		"log probabilities":  {"/v1/chat/completions", `{"model":"canyon","logprobs":true,` + hi + `}`, `"param":"logprobs"`},
		"JSON":               {"/v1/chat/completions", `{"model":"canyon","response_format":{"type":"json_object"},` + hi + `}`, `"param":"response_format"`},
		"a schema":           {"/v1/chat/completions", `{"model":"canyon","stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"a",` + schema + `}},` + hi + `}`, `"param":"response_format"`},
		"a schema, Messages": {"/v1/messages", `{"model":"canyon","max_tokens":9,"output_config":{"format":{"type":"json_schema",` + schema + `}},` + hi + `}`, "output_config.format: The engine"},
		"token ids":          {"/v1/embeddings", `{"model":"ruler","input":[1,2,3]}`, `"param":"input"`},
		"vectors of a chat":  {"/v1/embeddings", `{"model":"canyon","input":"hi"}`, "is no embedding model"},
		"a chat of vectors":  {"/v1/chat/completions", `{"model":"ruler",` + hi + `}`, "generates no text"},
		"images":             {"/v1/chat/completions", `{"model":"canyon","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`, "unsupported_content"},
		"reasoning":          {"/api/v1/chat", `{"model":"canyon","input":"hi","reasoning":"on"}`, "does not expose reasoning"},
		"no messages":        {"/v1/chat/completions", `{"model":"canyon","messages":[]}`, "at least one message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status, body := s.do("POST", tt.path, tt.body); status != 400 || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want 400 with %s", status, body, tt.want)
			}
		})
	}
	t.Cleanup(func() {
		if in := s.node.Instances(); len(in) > 0 {
			t.Errorf("loaded: %v", in)
		}
	})
}

// The engine's own errors are read by its wire.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := serve(t)
	long := strings.Repeat("a ", 50)
	for name, tt := range map[string]struct {
		prompt string
		status int
		want   string
	}{
		"a prompt that is too long": {long, 400, "50 tokens"},
		"a refusal":                 {"refuse it is silly", 400, "The engine refused the request: it is silly"},
		"a failure":                 {"fail badly", 502, "The engine answered with status 500: badly"},
		"nonsense":                  {"well\nbabble", 502, "The engine's answer can't be read."},
		"despair":                   {"well\ndespair it is late", 502, "The engine gave up: it is late"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for dialect, send := range map[string]func(prompt, more string) (int, string){
				"OpenAI":   func(prompt, more string) (int, string) { return s.chat("/v1/chat/completions", prompt, more) },
				"v0":       func(prompt, more string) (int, string) { return s.chat("/api/v0/chat/completions", prompt, more) },
				"Messages": s.messages, "native": s.native,
			} {
				if status, body := send(tt.prompt, ""); status != tt.status || !strings.Contains(body, tt.want) {
					t.Errorf("%s: %d %s, want %d with %s", dialect, status, body, tt.status, tt.want)
				}
				_, stream := send(tt.prompt, `,"stream":true`)
				if !strings.Contains(stream, tt.want) {
					t.Errorf("%s, streamed: %s, want %s", dialect, stream, tt.want)
				}
			}
		})
	}
}

// An engine that dies amid an answer is told of in the stream, and the next request is answered by a new one.
func TestFaults_Death(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for i, send := range []func(prompt, more string) (int, string){
		func(prompt, more string) (int, string) { return s.chat("/v1/chat/completions", prompt, more) },
		func(prompt, more string) (int, string) { return s.chat("/api/v0/chat/completions", prompt, more) },
		s.messages, s.native,
	} {
		name := strings.Repeat("I", i+1) // another prompt for each: one that kills twice is refused
		status, stream := send(name+" say\ndie", `,"stream":true`)
		if status != 200 || !strings.Contains(stream, `"say"`) || !strings.Contains(stream, "The engine stopped in the middle of its answer.") {
			t.Errorf("%s: %d %s", name, status, stream)
		}
		if status, body := send(name+" am well", ""); status != 200 || !strings.Contains(body, name+" am well") {
			t.Errorf("%s: the next request: %d %s", name, status, body)
		}
	}
	// What the client has seen nothing of is sent once more. This request kills the second engine, too, and is refused from then on.
	if status, body := s.native("never\ndie", ""); status != 400 || gjson.Get(body, "error.code").Str != "request_crashes_engine" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.native("never", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
