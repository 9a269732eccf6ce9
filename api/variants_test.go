package api

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestVariants(t *testing.T) {
	t.Parallel()
	s, server := serveWithHub(t)
	server.Add("acme/many-GGUF", fakehub.Files{
		"many-Q4_K_M.gguf": fakehub.Random(1, 4000), "many-Q8_0.gguf": fakehub.Random(2, 8000), "many-UD-IQ2_XXS.gguf": fakehub.Random(3, 2000),
		"many-BF16-00001-of-00002.gguf": fakehub.Random(4, 9000), "many-BF16-00002-of-00002.gguf": fakehub.Random(5, 7000), "many-Q5_K_M-00001-of-00002.gguf": fakehub.Random(6, 10),
		"mmproj-many-F16.gguf": fakehub.Random(7, 500), "imatrix.gguf": fakehub.Random(8, 10), "README.md": fakehub.Random(9, 10),
	})
	page := server.URL + "/acme/many-GGUF"
	for _, name := range []string{"acme/many-GGUF", "acme/many-gguf@q8_0", page} {
		got := s.do("GET", "/api/v1/models/variants?model="+url.QueryEscape(name), "")
		answer := gjson.Parse(got.body)
		wantName, _, _ := strings.Cut(name, "@")
		if got.status != 200 || answer.Get("repository").Str != "acme/many-GGUF" || answer.Get("url").Str != page || answer.Get("model").Str != wantName {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		var all []string
		for _, v := range answer.Get("variants").Array() {
			all = append(all, strings.Join([]string{v.Get("quantization").Str, v.Get("bits").Raw, v.Get("size_bytes").Raw, v.Get("recommended").Raw, v.Get("downloaded").Raw, v.Get("fits_memory").Raw, v.Get("fits_disk").Raw}, " "))
		}
		const want = "Q4_K_M 4 4500 true false true true; Q8_0 8 8500 false false true true; BF16 16 16500 false false true true; UD-IQ2_XXS 2 2500 false false true true"
		if strings.Join(all, "; ") != want {
			t.Errorf("%s: %q, want %q", name, strings.Join(all, "; "), want)
		}
	}
	s.events(s.start("acme/tiny-GGUF@Q8_0"))
	if got := s.do("GET", "/api/v1/models/variants?model=acme/tiny-GGUF", ""); gjson.Get(got.body, "variants.#.downloaded").Raw != "[false,true]" || gjson.Get(got.body, "variants.#.recommended").Raw != "[true,false]" {
		t.Errorf("%d %s", got.status, got.body)
	}
	for query, want := range map[string]struct {
		status int
		code   string
	}{
		"": {400, "missing_required_parameter"}, "model=": {400, "missing_required_parameter"}, "model=x%00/y": {400, ""}, "model=nope": {404, "model_not_found"}, "model=acme/nope": {404, "model_not_found"},
		"model=https://elsewhere.example/a/b": {400, ""}, "model=a/b&limit=3": {400, "unknown_parameter"}, "model=" + strings.Repeat("a", 9000): {400, ""},
	} {
		if got := s.do("GET", "/api/v1/models/variants?"+query, ""); got.status != want.status || want.code != "" && got.code() != want.code {
			t.Errorf("%.50s: %d %s", query, got.status, got.body)
		}
	}
	server.Kill()
	if got := s.do("GET", "/api/v1/models/variants?model=acme/tiny-GGUF", ""); got.status != 502 || got.code() != "hub_failed" {
		t.Errorf("without a hub: %d %s", got.status, got.body)
	}
}

// What doesn't fit is shown, and not recommended.
func TestVariants_WhatFits(t *testing.T) {
	t.Parallel()
	server := fakehub.Start(t)
	server.Add("acme/many-GGUF", fakehub.Files{"many-Q4_K_M.gguf": fakehub.Random(1, 4000), "many-Q2_K.gguf": fakehub.Random(3, 2000)})
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Hubs = []hub.Config{{URL: server.URL}}
		settings.MemoryBudget.Bytes = 3000
	})
	got := s.do("GET", "/api/v1/models/variants?model=acme/many-GGUF", "")
	if gjson.Get(got.body, "variants.#.fits_memory").Raw != "[false,true]" || gjson.Get(got.body, "variants.#.recommended").Raw != "[false,true]" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestVariants_Rights(t *testing.T) {
	t.Parallel()
	open, _ := serveWithHub(t)
	s := guarded(open)
	reader, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead, access.ScopeInference}})
	narrow, _ := s.token(access.Token{Models: []string{"acme/tiny@q8_0"}})
	other, _ := s.token(access.Token{Models: []string{"other/*"}})
	const path = "/api/v1/models/variants?model=acme/tiny-GGUF"
	if got := s.with(reader, "GET", path, ""); got.status != 403 || got.code() != "missing_scope" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(other, "GET", path, ""); got.status != 403 || got.code() != "model_not_allowed" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(narrow, "GET", path, ""); gjson.Get(got.body, "variants.#.quantization").Raw != `["Q8_0"]` {
		t.Errorf("%d %s", got.status, got.body)
	}
}
