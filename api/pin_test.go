package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// pinnedOf returns which instances are pinned, and the ttl of each.
func (s *server) pinnedOf() (pinned []string, ttl map[string]float64) {
	s.t.Helper()
	ttl = map[string]float64{}
	for _, in := range gjson.Get(s.do("GET", "/api/v1/ps", "").body, "instances").Array() {
		if in.Get("pinned").Bool() {
			pinned = append(pinned, in.Get("id").Str)
		}
		ttl[in.Get("id").Str] = in.Get("ttl_seconds").Num
	}
	return pinned, ttl
}

const pinPath = "/api/v1/models/pin"

func TestPin(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.IdleTTL = time.Hour })
	withOthers(s)
	s.chatAs("", "loads it")
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat","pinned":true,"ttl":60}`); got.status != 200 {
		t.Fatal(got.body)
	}
	const first, second = "lmcaddy/tinychat", "lmcaddy/tinychat:2"
	for _, step := range []struct {
		body, ids string
		want      []string
		ttl       [2]float64
	}{
		{"", "", []string{second}, [2]float64{3600, 60}},
		{`{"model":"tinychat","pinned":true}`, `["lmcaddy/tinychat","lmcaddy/tinychat:2"]`, []string{first, second}, [2]float64{0, 60}},
		{`{"instance_id":"tinychat:2","pinned":false,"model":null}`, `["lmcaddy/tinychat:2"]`, []string{first}, [2]float64{0, 60}},
		{`{"instance_id":"lmcaddy/tinychat:1","pinned":true}`, `["lmcaddy/tinychat"]`, []string{first}, [2]float64{0, 60}},
		{`{"model":"lmcaddy/tinychat","pinned":false}`, `["lmcaddy/tinychat","lmcaddy/tinychat:2"]`, nil, [2]float64{3600, 60}},
	} {
		if step.body != "" {
			got := s.do("POST", pinPath, step.body)
			if got.status != 200 || gjson.Get(got.body, "instance_ids").Raw != step.ids || gjson.Get(got.body, "model").Str != first {
				t.Errorf("%s: %d %s", step.body, got.status, got.body)
			}
		}
		pinned, ttl := s.pinnedOf()
		if !slices.Equal(pinned, step.want) || ttl[first] != step.ttl[0] || ttl[second] != step.ttl[1] {
			t.Errorf("%s: %v, %v", step.body, pinned, ttl)
		}
	}
	for body, want := range map[string]string{
		`{"model":"tinychat"}`: `"param":"pinned"`, `{"model":"tinychat","pinned":null}`: `"param":"pinned"`, `{"pinned":true}`: `"param":"model"`,
		`{"model":"tinychat","pinned":1}`: "invalid_type", `{"model":"tinychat","pinned":true,"pinned":false}`: "duplicate_field",
		`{"model":"tinychat","instance_id":"x","pinned":true}`: `"param":"instance_id"`, `{"model":"","pinned":true}`: `"param":"model"`,
		`{"model":"nope","pinned":true}`: "model_not_found", `{"instance_id":"nope","pinned":true}`: `"param":"instance_id"`,
		`{"model":"tinyembed","pinned":true}`: "model_not_loaded", `{"instance_id":"lmcaddy/tinyembed","pinned":true}`: `"param":"instance_id"`,
	} {
		if got := s.do("POST", pinPath, body); got.status < 400 || got.status > 404 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat","pinned":"yes"}`); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What is pinned stays pinned under new settings, and isn't unloaded for another model.
func TestPin_Lasts(t *testing.T) {
	t.Parallel()
	settings := node.Settings{}
	s := serve(t, nil, func(_ *endpoint.Config, s *node.Settings) {
		s.MaxLoaded, s.Models = 1, map[string]node.ModelSettings{"lmcaddy/tinyembed": {Pinned: true}}
		settings = *s
	})
	withOthers(s)
	s.chatAs("", "loads it")
	s.do("POST", pinPath, `{"model":"tinychat","pinned":true}`)
	settings.IdleTTL = time.Minute
	if err := s.node.Push(2, settings); err != nil {
		t.Fatal(err)
	}
	embed := func() answer { return s.do("POST", "/v1/embeddings", `{"model":"tinyembed","input":"hi"}`) }
	if got := embed(); got.status != 503 || !strings.Contains(got.body, "pinned") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if pinned, ttl := s.pinnedOf(); len(pinned) != 1 || ttl["lmcaddy/tinychat"] != 0 {
		t.Error(pinned, ttl)
	}
	s.do("POST", pinPath, `{"model":"tinychat","pinned":false}`)
	if got := embed(); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.do("POST", pinPath, `{"model":"tinyembed","pinned":false}`) // though the settings pin it
	s.chatAs("", "goes before it")
}

func TestPin_Rights(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	all, _ := s.token(access.Token{})
	narrow, _ := s.token(access.Token{Models: []string{"other/*"}})
	reader, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead, access.ScopeInference}})
	s.chatAs(all, "loads it")
	var unknown [2]answer
	for i, name := range []string{"lmcaddy/tinychat", "lmcaddy/nothing0"} {
		unknown[i] = s.with(narrow, "POST", pinPath, `{"instance_id":"`+name+`","pinned":true}`)
		if got := s.with(narrow, "POST", pinPath, `{"model":"`+name+`","pinned":true}`); got.status != 404 || got.code() != "model_not_found" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if unknown[0].status != 404 || strings.ReplaceAll(unknown[0].body, "tinychat", "nothing0") != unknown[1].body {
		t.Errorf("a model that there is shows: %s %s", unknown[0].body, unknown[1].body)
	}
	if got := s.with(reader, "POST", pinPath, `{"model":"tinychat","pinned":true}`); got.status != 403 || got.code() != "missing_scope" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
