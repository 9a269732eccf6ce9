package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// A parameter that would be ignored is an error: a filter that isn't one would have more deleted than was meant.
func TestQuery_NothingIsIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	const old = "updated_before=2026-01-01T00:00:00Z"
	for request, want := range map[string]string{
		"DELETE /api/v1/warm?modle=tinychat":                       `400 unknown_parameter It has: model.`,
		"DELETE /api/v1/warm?model=tiny%zzchat":                    `400 invalid_query percent-encoding`,
		"DELETE /api/v1/warm?model=tinychat;x":                     `400 invalid_query percent-encoding`,
		"DELETE /api/v1/warm?model=":                               `400 invalid_value is empty`,
		"DELETE /api/v1/warm":                                      `200  "deleted"`,
		"DELETE /api/v1/conversations?" + old + "&owner=a%zz":      `400 invalid_query percent-encoding`,
		"DELETE /api/v1/conversations?" + old + "&owner=a&owner=b": `400 duplicate_parameter more than once`,
		"DELETE /api/v1/conversations?" + old + "&user=a":          `400 unknown_parameter updated_before, owner.`,
		"DELETE /api/v1/conversations?" + old:                      `200  "deleted"`,
		"DELETE /api/v1/conversations/0123456789?ownr=a":           `400 unknown_parameter owner`,
		"GET /api/v1/logs?folow=true":                              `400 unknown_parameter follow`,
		"GET /api/v1/logs?level=warn&level=debug":                  `400 duplicate_parameter more than once`,
		"GET /api/v1/usage?since=7d&form=2026-01-01":               `400 unknown_parameter from`,
		"GET /api/v1/usage?by=day":                                 `200  "total"`,
		"GET /api/v1/models?x=y":                                   `200  tinychat`, // it has none
		"GET /api/v1/health?ready&nocache=1":                       `200  "ok"`,
	} {
		method, path, _ := strings.Cut(request, " ")
		status, rest, _ := strings.Cut(want, " ")
		code, text, _ := strings.Cut(rest, " ")
		got := s.with(admin, method, path, "")
		if body, _ := json.Marshal(got.status); string(body) != status || got.code() != code || !strings.Contains(got.body, text) {
			t.Errorf("%s: %d %s, want %s", request, got.status, got.body, want)
		}
	}
	if got := s.with(admin, "HEAD", "/api/v1/logs?folow=true", ""); got.status != 400 {
		t.Errorf("HEAD: %d", got.status)
	}
}

// The parameters are those of the document.
func TestQuery_AsDescribed(t *testing.T) {
	t.Parallel()
	var d struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(openAPI, &d); err != nil {
		t.Fatal(err)
	}
	described := map[string][]string{}
	for path, operations := range d.Paths {
		for method, o := range operations {
			for _, p := range o.Parameters {
				if p.In == "query" && path != manage.HealthPath { // which load balancers may ask as they like
					name := strings.ToUpper(method) + " " + pattern(path)
					described[name] = append(described[name], p.Name)
				}
			}
		}
	}
	parameters := map[string][]string{}
	for _, r := range routes {
		if r.Query != nil && strings.HasPrefix(r.Path, "/api/") {
			parameters[r.Method+" "+r.Path] = r.Query
		}
	}
	if diff := cmp.Diff(described, parameters, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("not as in openapi.json (-described +taken):\n%s", diff)
	}
}
