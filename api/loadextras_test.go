package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

const (
	loadPath   = "/api/v1/models/load"
	unloadPath = "/api/v1/models/unload"
)

func TestLoad_ExtraFields(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got := s.do("POST", loadPath, `{"model":"tinychat","parallel":2,"ttl":90,"identifier":"helper","echo_load_config":true}`)
	if diff := cmp.Diff([]string{"type", "instance_id", "load_time_seconds", "status", "load_config"}, keysOf(gjson.Parse(got.body))); diff != "" {
		t.Errorf("%d (-want +got):\n%s", got.status, diff)
	}
	if id, parallel := gjson.Get(got.body, "instance_id").Str, gjson.Get(got.body, "load_config.parallel").Int(); id != "helper" || parallel != 2 {
		t.Errorf("%s", got.body)
	}
	in := s.node.Instances()[0]
	if in.ID != "helper" || in.Spec.Parallel != 2 || in.Spec.TTL.Seconds() != 90 || in.Expires.IsZero() {
		t.Errorf("%+v", in)
	}
	plain := s.do("POST", loadPath, `{"model":"tinychat","echo_load_config":true}`)
	if gjson.Get(plain.body, "load_config.parallel").Exists() || gjson.Get(plain.body, "instance_id").Str != "lmcaddy/tinychat" {
		t.Errorf("without the fields: %s", plain.body)
	}
	if s.node.Instances()[1].Spec.TTL != 0 {
		t.Error("what was loaded by hand expires")
	}
}

// TestLoad_ABatchOfOneIsRaised to the smallest that the engine has, and told as applied.
func TestLoad_ABatchOfOneIsRaised(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, more := range []string{`"echo_load_config":true`, `"estimate_only":true`} {
		got := s.do("POST", loadPath, `{"model":"tinychat","eval_batch_size":1,`+more+`}`)
		if got.status != 200 || !strings.Contains(got.body, `"eval_batch_size":2`) {
			t.Errorf("%s: %d %s", more, got.status, got.body)
		}
	}
}

func TestLoad_ExtraFieldsHaveBounds(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for name, tt := range map[string]struct{ body, code, param string }{
		"no requests":         {`"parallel":0`, "invalid_value", "parallel"},
		"too many requests":   {`"parallel":1025`, "invalid_value", "parallel"},
		"half a request":      {`"parallel":1.5`, "invalid_type", "parallel"},
		"before the past":     {`"ttl":-2`, "invalid_value", "ttl"},
		"beyond any time":     {`"ttl":1000000001`, "invalid_value", "ttl"},
		"words":               {`"ttl":"30m"`, "invalid_type", "ttl"},
		"no name":             {`"identifier":""`, "invalid_value", "identifier"},
		"a name with a space": {`"identifier":"a b"`, "invalid_value", "identifier"},
		"a pattern":           {`"identifier":"gpt-*"`, "invalid_value", "identifier"},
		"control characters":  {`"identifier":"a\u001b[2J"`, "invalid_value", "identifier"},
		"a long name":         {`"identifier":"` + strings.Repeat("x", 129) + `"`, "invalid_value", "identifier"},
		"a number":            {`"identifier":5`, "invalid_type", "identifier"},
		"maybe":               {`"estimate_only":"maybe"`, "invalid_type", "estimate_only"},
	} {
		got := s.do("POST", loadPath, `{"model":"tinychat",`+tt.body+`}`)
		if got.status != 400 || got.code() != tt.code || gjson.Get(got.body, "error.param").Str != tt.param {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if len(s.node.Instances()) > 0 {
		t.Error("a bad request has loaded a model")
	}
}

// In every API an instance is used by its identifier, and told of by it.
func TestLoad_AnIdentifierNamesTheInstance(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-4", "claude-*"}}}
	})
	link(t, "../testdata/models/lmcaddy/tinyembed/tinyembed-f16.gguf", filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyembed", "tinyembed-f16.gguf"))
	s.chat("") // the model's first instance
	if got := s.do("POST", loadPath, `{"model":"tinychat","identifier":"Helper/one"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct{ path, body, model string }{
		"chat":       {"/v1/chat/completions", messages, "model"},
		"v0":         {"/api/v0/chat/completions", messages, "model"},
		"messages":   {"/v1/messages", `"max_tokens":9,` + messages, "model"},
		"native":     {"/api/v1/chat", `"input":"hi"`, "model_instance_id"},
		"completion": {"/v1/completions", `"prompt":"hi"`, "model"},
	} {
		for _, id := range []string{"Helper/one", "helper/ONE"} {
			if got := s.do("POST", tt.path, `{"model":"`+id+`",`+tt.body+`}`); gjson.Get(got.body, tt.model).Str != "Helper/one" {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	}
	for path, id := range map[string]string{"/v1/models/Helper%2Fone": "id", "/api/v0/models/Helper/one": "id", "/api/v1/models/Helper/one": "key"} {
		if got := s.do("GET", path, ""); got.status != 200 || gjson.Get(got.body, id).Str == "" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if list := s.do("GET", "/v1/models", "").body; !strings.Contains(list, `"Helper/one"`) {
		t.Error(list)
	}
	for _, taken := range []string{
		"Helper/one", "HELPER/ONE", "lmcaddy/tinychat", "tinychat", "tinyembed", "gpt-4", "claude-9", "GPT-4", "Claude-9",
		"lmcaddy/tinychat:1", "tinychat:2", "gpt-4:1", "claude-9:2", "LMCADDY/tinyembed:2",
	} {
		got := s.do("POST", loadPath, `{"model":"tinychat","identifier":"`+taken+`"}`)
		if got.status != http.StatusConflict || got.code() != "identifier_in_use" || gjson.Get(got.body, "error.param").Str != "identifier" {
			t.Errorf("%s: %d %s", taken, got.status, got.body)
		}
		if got := s.do("POST", loadPath, `{"model":"tinychat","estimate_only":true,"identifier":"`+taken+`"}`); taken != "Helper/one" && taken != "HELPER/ONE" && taken != "lmcaddy/tinychat" && got.status != http.StatusConflict {
			t.Errorf("an estimate of %s: %d %s", taken, got.status, got.body)
		}
	}
	if got := s.do("POST", loadPath, `{"model":"tinychat","estimate_only":true,"identifier":"lmcaddy/tinychat:2"}`); got.status != 200 {
		t.Errorf("a number of the model's own: %d %s", got.status, got.body)
	}
	// A model that gets the same name later doesn't take it away.
	link(t, shipped, filepath.Join(s.node.Home().Models(), "helper", "one", "one-f16.gguf"))
	s.do("GET", "/api/v1/models/nobody/nothing", "") // has the folder read
	if list := s.do("GET", "/api/v1/models", "").body; !gjson.Get(list, `models.#(key=="helper/one")`).Exists() {
		t.Error(list)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"helper/one",`+messages+`}`); gjson.Get(got.body, "model").Str != "Helper/one" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", unloadPath, `{"instance_id":"Helper/one"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"helper/one",`+messages+`}`); gjson.Get(got.body, "model").Str != "helper/one" {
		t.Errorf("once it is unloaded: %d %s", got.status, got.body)
	}
}

func TestUnload_ByOtherNames(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-4", "claude-*"}}}
	})
	for _, name := range []string{"gpt-4", "claude-3", "tinychat"} {
		s.chat("")
		if got := s.do("POST", unloadPath, `{"instance_id":"`+name+`"}`); got.body != `{"instance_id":"lmcaddy/tinychat"}` {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if got := s.do("POST", unloadPath, `{"instance_id":"`+name+`"}`); got.status != 404 {
			t.Errorf("%s, when none is loaded: %d %s", name, got.status, got.body)
		}
	}
	s.do("POST", loadPath, `{"model":"tinychat"}`)
	s.do("POST", loadPath, `{"model":"tinychat"}`)
	if got := s.do("POST", unloadPath, `{"instance_id":"gpt-4"}`); got.status != 404 {
		t.Errorf("one of two: %d %s", got.status, got.body)
	}
	s.do("POST", unloadPath, `{"instance_id":"lmcaddy/tinychat"}`)
	if got := s.do("POST", unloadPath, `{"instance_id":"lmcaddy/tinychat"}`); got.status != 404 {
		t.Errorf("the first one, again: %d %s", got.status, got.body)
	}
}

// An alias that comes with a reload leads to its model, though an instance of another model has chosen the same identifier before. A pattern doesn't.
func TestLoad_AnAliasGoesBeforeAnIdentifier(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	withOthers(s)
	if got := s.do("POST", loadPath, `{"model":"tinyvision","identifier":"helper"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	for i, tt := range []struct {
		model, alias, want string
	}{
		{"lmcaddy/tinychat", "helper", "lmcaddy/tinychat"},
		{"lmcaddy/tinychat", "help*", "lmcaddy/tinyvision"},
		{"lmcaddy/tinyvision", "helper", "lmcaddy/tinyvision"},
		{"lmcaddy/gone", "helper", "lmcaddy/tinyvision"},
	} {
		settings := s.node.Settings()
		settings.Models = map[string]node.ModelSettings{tt.model: {Aliases: []string{tt.alias}}}
		if err := s.node.Push(uint64(i)+2, settings); err != nil {
			t.Fatal(err)
		}
		if got := s.do("GET", "/api/v1/models/helper", ""); gjson.Get(got.body, "key").Str != tt.want {
			t.Errorf("%+v: %d %.200s", tt, got.status, got.body)
		}
	}
	if got := s.do("POST", unloadPath, `{"instance_id":"helper"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestUnload_AnAliasDoesNotTellWhatItStandsFor(t *testing.T) {
	t.Parallel()
	open := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-4"}}}
	})
	open.chat("")
	s := guarded(open)
	secret, _ := s.token(access.Token{Models: []string{"acme/*"}})
	if got := s.with(secret, "POST", unloadPath, `{"instance_id":"gpt-4"}`); got.status != 404 || strings.Contains(got.body, "tinychat") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.MemoryBudget.Bytes = 400 << 20 })
	first := s.do("POST", loadPath, `{"model":"tinychat","estimate_only":true,"parallel":2,"context_length":1000,"flash_attention":true}`)
	got := gjson.Parse(first.body)
	if first.status != 200 || len(s.node.Instances()) > 0 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	for path, want := range map[string]string{
		"status": "estimated", "model": "lmcaddy/tinychat", "type": "llm", "fits": "true", "parallel": "2", "memory_budget_bytes": "419430400",
		"free_bytes": "419430400", "memory.confidence": "high", "load_config.context_length": "1024", "load_config.parallel": "2",
		"load_config.flash_attention": "true", "would_unload": "[]", "would_shrink": "[]", "would_wait": "false",
	} {
		if got.Get(path).String() != want {
			t.Errorf("%s is %s, want %s", path, got.Get(path), want)
		}
	}
	sum := int64(0)
	for _, part := range []string{"weights", "kv_cache", "compute", "projector", "draft_model", "prompt_cache", "engine"} {
		n := got.Get("memory." + part + "_bytes")
		if !n.Exists() {
			t.Errorf("it says nothing of %s", part)
		}
		sum += n.Int()
	}
	if total := got.Get("memory.total_bytes").Int(); sum != total || total < 20<<20 {
		t.Errorf("the parts are %d bytes, all of it %d", sum, total)
	}
	s.do("POST", loadPath, `{"model":"tinychat"}`)
	with := func(fields string) gjson.Result {
		t.Helper()
		a := s.do("POST", loadPath, `{"model":"tinychat","estimate_only":true`+fields+`}`)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return gjson.Parse(a.body)
	}
	if beside := with(`,"parallel":24`); beside.Get("would_unload").Raw != `["lmcaddy/tinychat"]` || !beside.Get("fits").Bool() {
		t.Errorf("a large one: %s", beside.Raw)
	}
	if none := with(`,"parallel":1024`); none.Get("fits").Bool() || !strings.Contains(none.Get("reason").Str, "memory budget") {
		t.Errorf("what can never be loaded: %s", none.Raw)
	}
	if n := len(s.node.Instances()); n != 1 {
		t.Errorf("%d instances are loaded", n)
	}
}

// What belongs to others is counted, and not named.
func TestEstimate_OfALimitedToken(t *testing.T) {
	t.Parallel()
	open := serve(t, &fakeengine.Script{}, func(_ *endpoint.Config, settings *node.Settings) { settings.MaxLoaded = 1 })
	link(t, shipped, filepath.Join(open.node.Home().Models(), "acme", "own", "own-f16.gguf"))
	open.chat("")
	s := guarded(open)
	secret, _ := s.token(access.Token{Models: []string{"acme/*"}})
	got := s.with(secret, "POST", loadPath, `{"model":"acme/own","estimate_only":true}`)
	if got.status != 200 || strings.Contains(got.body, "tinychat") || gjson.Get(got.body, "would_unload_others").Int() != 1 || gjson.Get(got.body, "would_unload").Raw != "[]" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
