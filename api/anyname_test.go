package api

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

const embedding = "../testdata/models/lmcaddy/tinyembed/tinyembed-f16.gguf"

// TestUnknownModel_Single: any name, and none, mean the one model of the kind that a request asks for.
func TestUnknownModel_Single(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, s *node.Settings) { s.AnyName = true })
	models := s.node.Home().Models()
	link(t, embedding, filepath.Join(models, "lmcaddy", "tinyembed", "e.gguf"))
	link(t, strings.ReplaceAll(embedding, "tinyembed", "tinyrerank"), filepath.Join(models, "lmcaddy", "tinyrerank", "r.gguf"))
	ask := func(path, fields string) answer { return s.do("POST", path, `{`+fields+`}`) }
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct{ path, fields, want string }{
		"any name":        {"/v1/chat/completions", `"model":"gpt-4o",` + messages, `"model":"lmcaddy/tinychat"`},
		"no name":         {"/v1/chat/completions", messages, `"model":"lmcaddy/tinychat"`},
		"Messages":        {"/v1/messages", `"model":"claude-opus","max_tokens":5,` + messages, `"model":"lmcaddy/tinychat"`},
		"embeddings":      {"/v1/embeddings", `"model":"text-embedding-3-small","input":"hi"`, `"model":"lmcaddy/tinyembed"`},
		"ranks":           {"/rerank", `"query":"a","texts":["b"]`, `"score":`},
		"ranks, Cohere":   {"/v2/rerank", `"model":"rerank-v3.5","query":"a","documents":["b"]`, `"relevance_score":`},
		"a number":        {"/v1/chat/completions", `"model":3,` + messages, `invalid_type`},
		"another's draft": {"/v1/chat/completions", `"model":"gpt-4o","draft_model":"gpt-4o-mini",` + messages, `model_not_found`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(tt.path, tt.fields); !strings.Contains(got.body, tt.want) {
				t.Errorf("%d %s, want %s", got.status, got.body, tt.want)
			}
		})
	}
	// a second chat model: the loaded one is meant
	link(t, shipped, filepath.Join(models, "other", "chat", "f.gguf"))
	if got := ask("/v1/chat/completions", `"model":"gpt-4o",`+messages); got.status != 200 {
		t.Errorf("one of two is loaded: %d %s", got.status, got.body)
	}
	if got := ask("/api/v1/models/load", `"model":"gpt-4o"`); got.status != 404 {
		t.Errorf("a load of any name: %d %s", got.status, got.body)
	}
	if got := ask("/v1/chat/completions", `"model":"other/chat",`+messages); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := ask("/v1/chat/completions", `"model":"gpt-4o",`+messages); got.status != 404 || !strings.Contains(got.body, "There are: ") {
		t.Errorf("both are loaded: %d %s", got.status, got.body)
	}
}
