package api

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

// TestContexts_AreWhatARequestGets: every list says the same, before a model is loaded, while it is, and under new settings.
func TestContexts_AreWhatARequestGets(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.ListAll = true
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {ContextLength: 1500}}
	})
	check := func(when string, want int) {
		t.Helper()
		for _, tt := range []struct{ method, path, body, fields string }{
			{"GET", "/v1/models", "", "data.0.context_length data.0.max_model_len"},
			{"GET", "/v1/models/tinychat", "", "context_length max_model_len"},
			{"GET", "/api/v0/models", "", "data.0.context_length"},
			{"GET", "/api/v0/models/tinychat", "", "context_length"},
			{"GET", "/api/v1/models", "", "models.0.context_length"},
			{"GET", "/api/v1/models/tinychat", "", "context_length"},
			{"GET", "/api/tags", "", "models.0.details.context_length"},
			{"POST", "/api/show", `{"model":"tinychat"}`, `details.context_length model_info.llama\.context_length`},
		} {
			got := s.do(tt.method, tt.path, tt.body)
			expectEach(t, when+": "+tt.path, got, tt.fields, want)
		}
		got := s.do("GET", "/v1/models", "", "Anthropic-Version", "2023-06-01")
		expectEach(t, when+": Anthropic-style", got, "data.0.max_input_tokens data.0.max_tokens", want)
		shown := gjson.Get(s.do("POST", "/api/show", `{"model":"tinychat"}`).body, "parameters").Str
		if shown != fmt.Sprintf("num_ctx                        %d", want) {
			t.Errorf("%s: the parameters are %q", when, shown)
		}
		if most := gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.0.max_context_length").Int(); most != 8192 {
			t.Errorf("the model's maximum is %d", most)
		}
	}
	check("not loaded", 1536) // a multiple of 256
	settings := s.node.Settings()
	settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {ContextLength: 3072}}
	if err := s.node.Push(2, settings); err != nil {
		t.Fatal(err)
	}
	check("under new settings", 3072)
	for _, length := range []string{"512", "2048"} {
		if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat","context_length":`+length+`}`); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	list := s.do("GET", "/v1/models", "").body
	if got := gjson.Get(list, "data.#.context_length").Raw + gjson.Get(list, "data.#.state").Raw; got != `[512,2048]["loaded","loaded"]` {
		t.Errorf("instances have %s", got)
	}
	if got := gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.0.context_length").Int(); got != 2048 {
		t.Errorf("a request gets %d", got)
	}
	if got := gjson.Get(s.do("GET", "/v1/models/tinychat:1", "").body, "context_length").Int(); got != 512 {
		t.Errorf("one to the first gets %d", got)
	}
	ps := s.do("GET", "/api/ps", "").body
	if got := gjson.Get(ps, "models.#.context_length").Raw + gjson.Get(ps, "models.#.details.context_length").Raw; got != `[512,2048][512,2048]` {
		t.Errorf("ps has %s", got)
	}
}

func expectEach(t *testing.T, what string, got answer, fields string, want int) {
	t.Helper()
	for _, r := range gjson.GetMany(got.body, strings.Fields(fields)...) {
		if got.status != 200 || r.Int() != int64(want) {
			t.Errorf("%s: %d %s, want %d in %.600s", what, got.status, r.Raw, want, got.body)
		}
	}
}

// TestModels_TheLoadedFirst, and the others after them, if they are listed.
func TestModels_TheLoadedFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.ListAll = true })
	link(t, "../testdata/models/lmcaddy/tinyembed/tinyembed-f16.gguf", filepath.Join(s.node.Home().Models(), "aaa", "first", "first.gguf"))
	if got := s.chat(""); got.status != 200 {
		t.Fatal(got.body)
	}
	for _, header := range [][]string{nil, {"Anthropic-Version", "2023-06-01"}} {
		list := s.do("GET", "/v1/models", "", header...).body
		if got := gjson.Get(list, "data.#.id").Raw + gjson.Get(list, "data.#.state").Raw; got != `["lmcaddy/tinychat","aaa/first"]["loaded","not-loaded"]` {
			t.Errorf("%s", got)
		}
	}
}
