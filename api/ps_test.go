package api

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestPS_WhatATokenSees(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	withOthers(open)
	s := guarded(open)
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	other, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead}})
	loader, own := s.token(access.Token{})
	narrow, _ := s.token(access.Token{Models: []string{"lmcaddy/tinyembed"}})
	none, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	for _, model := range []string{"tinychat", "tinyembed"} {
		if got := s.with(loader, "POST", "/api/v1/models/load", `{"model":"`+model+`"}`); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	const path = "/api/v1/ps"
	for name, tt := range map[string]struct {
		got    answer
		ids    string
		owner  string
		detail bool
	}{
		"an administrator": {s.with(admin, "GET", path, ""), `["lmcaddy/tinychat","lmcaddy/tinyembed"]`, own.ID, true},
		"another token":    {s.with(other, "GET", path, ""), `["lmcaddy/tinychat","lmcaddy/tinyembed"]`, "", false},
		"the owner":        {s.with(loader, "GET", path, ""), `["lmcaddy/tinychat","lmcaddy/tinyembed"]`, own.ID, false},
		"of one model":     {s.with(narrow, "GET", path, ""), `["lmcaddy/tinyembed"]`, "", false},
		"anybody":          {open.do("GET", path, ""), `["lmcaddy/tinychat","lmcaddy/tinyembed"]`, "", false},
	} {
		first := gjson.Get(tt.got.body, "instances.0")
		if tt.got.status != 200 || gjson.Get(tt.got.body, "instances.#.id").Raw != tt.ids || first.Get("owner").Str != tt.owner {
			t.Errorf("%s: %d %s", name, tt.got.status, tt.got.body)
		}
		for _, field := range []string{"pid", "address", "engine_version"} {
			if first.Get(field).Exists() != tt.detail {
				t.Errorf("%s: %s: %s", name, field, first.Raw)
			}
		}
		if first.Get("status").Str != "ready" || first.Get("slots").Int() < 1 || first.Get("engine").Str == "" {
			t.Errorf("%s: %s", name, first.Raw)
		}
		total := int64(0)
		for _, in := range gjson.Get(tt.got.body, "instances").Array() {
			total += in.Get("memory_bytes").Int()
		}
		if gjson.Get(tt.got.body, "memory_bytes").Int() != total {
			t.Errorf("%s: the memory is of other instances, too: %s", name, tt.got.body)
		}
		if gjson.Get(tt.got.body, "devices.#.name").Raw != `["CPU"]` || gjson.Get(tt.got.body, "devices.0.claimed_bytes").Int() != total || gjson.Get(tt.got.body, "devices.0.total_bytes").Int() == 0 {
			t.Errorf("%s: what is claimed isn't that of the instances: %s", name, tt.got.body)
		}
		if free := gjson.Get(tt.got.body, "devices.0.free_bytes"); name == "of one model" && free.Exists() {
			t.Errorf("%s: what is free tells of other models: %s", name, tt.got.body)
		}
	}
	if got := s.with(none, "GET", path, ""); got.status != 403 {
		t.Errorf("without models.read: %d %s", got.status, got.body)
	}
}
