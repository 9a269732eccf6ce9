package api

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// withOthers adds the models that aren't for chats. The fake engine is told what the real one is by the model's kind.
func withOthers(s *server) {
	s.t.Helper()
	for _, name := range []string{"tinyembed", "tinyrerank", "tinyvision"} {
		files, err := filepath.Glob("../testdata/models/lmcaddy/" + name + "/*.gguf")
		if err != nil || len(files) == 0 {
			s.t.Fatalf("no model %s: %v", name, err)
		}
		for _, file := range files {
			link(s.t, file, filepath.Join(s.node.Home().Models(), "lmcaddy", name, filepath.Base(file)))
		}
	}
}

// TestGolden keeps a request and its answer for each endpoint of the OpenAI-style and the v0 family.
func TestGolden(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Infill: true, Rules: []fakeengine.Rule{{
		Contains: `"Once`, Answer: fakeengine.Answer{Text: " upon a time, there was."}, PromptTokens: 7, CachedTokens: 2, DraftTokens: 6, DraftAccepted: 4,
	}}}, withoutStates)
	withOthers(s)
	const complete, completeV0, stream = "/v1/completions", "/api/v0/completions", `,"stream":true`
	const fill = `{"model":"tinychat","input_prefix":"Once","input_suffix":" end."`
	const once = `{"model":"tinychat","prompt":"Once","max_tokens":3`
	for _, tt := range []struct{ name, method, path, body string }{ // in this order: what is loaded shows in the lists
		{"models-none", "GET", "/v1/models", ""},
		{"v0-models", "GET", "/api/v0/models", ""},
		{"v0-model-not-loaded", "GET", "/api/v0/models/lmcaddy%2Ftinychat", ""},
		{"completion", "POST", complete, once + `}`},
		{"completion-stream", "POST", complete, once + stream + `}`},
		{"completion-usage", "POST", complete, once + stream + `,"stream_options":{"include_usage":true}}`},
		{"completion-choices", "POST", complete, `{"model":"lmcaddy/tinychat","prompt":["Once","Once more"],"n":2,"stop":[","]}`},
		{"completion-echo", "POST", complete, once + `,"echo":true}`},
		{"completion-echo-tokens", "POST", complete, `{"model":"tinychat","prompt":[5,6],"echo":true,"max_tokens":2}`},
		{"completion-echo-alone", "POST", complete, `{"model":"tinychat","prompt":"Once","echo":true,"max_tokens":0,"stream":true}`},
		{"completion-logprobs", "POST", complete, once + `,"logprobs":2}`},
		{"completion-logprobs-stream", "POST", complete, once + `,"logprobs":0` + stream + `}`},
		{"completion-suffix", "POST", complete, once + `,"suffix":" end."}`},
		{"completion-overflow", "POST", complete, `{"model":"tinychat","prompt":"` + strings.Repeat("a ", 9000) + `"` + stream + `}`},
		{"v0-completion", "POST", completeV0, once + `}`},
		{"v0-completion-stream", "POST", completeV0, once + stream + `}`},
		{"v0-completion-usage", "POST", completeV0, once + stream + `,"stream_options":{"include_usage":true}}`},
		{"v0-completion-choices", "POST", completeV0, once + `,"n":2}`},
		{"v0-completion-wrong", "POST", completeV0, `{"model":"tinychat"}`},
		{"embeddings", "POST", "/v1/embeddings", `{"model":"tinyembed","input":"The food was delicious."}`},
		{"embeddings-base64", "POST", "/v1/embeddings", `{"model":"tinyembed","input":["The food","was delicious."],"encoding_format":"base64"}`},
		{"embeddings-dimensions", "POST", "/v1/embeddings", `{"model":"tinyembed","input":[[1,2],[3]],"dimensions":3}`},
		{"embeddings-overflow", "POST", "/v1/embeddings", `{"model":"tinyembed","input":"` + strings.Repeat("a ", 600) + `"}`},
		{"v0-embeddings", "POST", "/api/v0/embeddings", `{"model":"tinyembed","input":"The food was delicious."}`},
		{"rerank", "POST", "/v1/rerank", `{"model":"tinyrerank","query":"red river","documents":["blue sky","red river","red sun"],"top_n":2,"return_documents":true}`},
		{"rerank-cohere", "POST", "/v2/rerank", `{"model":"tinyrerank","query":"red river","documents":["blue sky","red river","red sun"],"top_n":2,"max_tokens_per_doc":512}`},
		{"rerank-tei", "POST", "/rerank", `{"model":"tinyrerank","query":"red river","texts":["blue sky","red river","red sun"],"return_text":true}`},
		{"rerank-tei-wrong", "POST", "/rerank", `{"model":"tinyrerank","query":"red river","texts":[]}`},
		{"fim", "POST", "/v1/fim/completions", `{"model":"tinychat","prompt":"Once","suffix":" end.","max_tokens":3,"random_seed":7}`},
		{"fim-stream", "POST", "/v1/fim/completions", `{"model":"tinychat","prompt":"Once","suffix":null` + stream + `}`},
		{"fim-wrong", "POST", "/v1/fim/completions", `{"model":"tinychat","prompt":["a","b"]}`},
		{"infill", "POST", "/infill", `{"model":"tinychat","input_prefix":"Once","input_suffix":"","n_predict":3}`},
		{"infill-stream", "POST", "/infill", fill + `,"prompt":" upon","input_extra":[{"filename":"a.py","text":"x = 1"}]` + stream + `}`},
		{"infill-fields", "POST", "/infill", fill + `,"response_fields":["content","timings/prompt_n","none/such"]` + stream + `}`},
		{"infill-wrong", "POST", "/infill", fill + `,"input_extra":[{"filename":"a.py"}]}`},
		{"infill-missing", "POST", "/infill", `{"model":"tinychat","input_prefix":"Once"}`},
		{"tokenize", "POST", "/tokenize", `{"model":"tinychat","content":"one two"}`},
		{"tokenize-wrong", "POST", "/tokenize", `{"model":"tinychat","content":["one"]}`},
		{"detokenize", "POST", "/detokenize", `{"model":"tinychat","tokens":[1,2]}`},
		{"detokenize-wrong", "POST", "/detokenize", `{"model":"tinychat","tokens":[1,-2]}`},
		{"apply-template", "POST", "/apply-template", `{"model":"tinychat","messages":[{"role":"user","content":"Hello"}]}`},
		{"props", "GET", "/props?model=tinyembed", ""},
		{"props-unnamed", "GET", "/props", ""},
		{"slots", "GET", "/slots?model=tinychat", ""},
		{"models", "GET", "/v1/models", ""},
		{"model", "GET", "/v1/models/lmcaddy/tinyembed", ""},
		{"v0-models-loaded", "GET", "/api/v0/models", ""},
		{"v0-model", "GET", "/api/v0/models/lmcaddy/tinychat", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.do(tt.method, tt.path, tt.body)
			if got.status >= 500 {
				t.Fatalf("%d %s", got.status, got.body) // which no golden file is to keep
			}
			request := tt.body
			if len(request) > 500 {
				request = request[:60] + "…" + request[len(request)-20:]
			}
			text := fmt.Sprintf("%s %s\n%s\n\n%d %s\n%s\n", tt.method, tt.path, request, got.status, got.header.Get("Content-Type"), maskedChat(got.body))
			golden(t, tt.name, text)
		})
	}
}

// volatile is what differs from run to run.
var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"id":"(cmpl-|req_)[a-z2-7]{26}"`), `"id":"$1…"`},
	{regexp.MustCompile(`"created":\d{10}\b`), `"created":…`},
	{regexp.MustCompile(`"(tokens_per_second|time_to_first_token|generation_time)":[0-9.e+-]+`), `"$1":…`},
}

func masked(body string) string {
	for _, v := range volatile {
		body = v.what.ReplaceAllString(body, v.with)
	}
	return body
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	testkit.Golden(t, filepath.Join("testdata", name+".golden"), []byte(got))
}
