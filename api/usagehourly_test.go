package api

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestUsage_ByHour(t *testing.T) {
	t.Parallel()
	open := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}})
	s := guarded(open)
	ann, _ := s.token(access.Token{})
	bob, _ := s.token(access.Token{})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	began := time.Now().UTC().Truncate(time.Hour)
	for range 2 {
		s.chatAs(ann, "anns")
	}
	s.chatAs(bob, "bobs")
	open.chatAs("", "anybodys")
	for name, tt := range map[string]struct {
		s      *server
		secret string
		n      int64
	}{"ann": {s, ann, 2}, "bob": {s, bob, 1}, "an administrator": {s, admin, 4}, "anybody": {open, "", 1}} {
		for query, hours := range map[string]int{"": 24, "&since=48h": 48, "&since=7d": 168, "&since=168h": 168, "&since=1h": 1} {
			got := tt.s.with(tt.secret, "GET", "/api/v1/usage?by=hour"+query, "")
			var answer resource.HourlyUsage
			if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK {
				t.Fatalf("%s: %d %s: %v", name, got.status, got.body, err)
			}
			if answer.To.Sub(answer.From.Time) != time.Duration(hours-1)*time.Hour || answer.To.Minute() != 0 || answer.By != "hour" {
				t.Errorf("%s%s: from %s to %s", name, query, answer.From, answer.To)
			}
			if !time.Now().UTC().Truncate(time.Hour).Equal(began) {
				return // the hour has ended meanwhile
			}
			want := []resource.UsedHour{{Hour: began, Model: "lmcaddy/tinychat", UsageCount: resource.UsageCount{Requests: tt.n, TokensIn: 7 * tt.n, TokensOut: 2 * tt.n}}}
			if diff := cmp.Diff(want, answer.Usage) + cmp.Diff(want[0].UsageCount, answer.Total); diff != "" {
				t.Errorf("%s%s: %s", name, query, diff)
			}
		}
	}
	for _, query := range []string{"since=169h", "since=8d", "since=0h", "since=24", "since=x", "since=-1h", "from=2026-01-01", "to=2026-01-01"} {
		if got := s.with(ann, "GET", "/api/v1/usage?by=hour&"+query, ""); got.status != 400 || got.code() != "invalid_value" {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestSettings_Presets(t *testing.T) {
	t.Parallel()
	open := serve(t, nil, func(c *endpoint.Config, settings *node.Settings) {
		c.Version = "v1.2.3"
		settings.Presets = map[string]node.Preset{"short": {"max_tokens": json.RawMessage("9")}, "kind": {"system_prompt": json.RawMessage(`"Be kind."`)}}
	})
	s := guarded(open)
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	other, _ := s.token(access.Token{})
	const names = `[{"name":"kind"},{"name":"short"}]`
	const all = `[{"name":"kind","fields":{"system_prompt":"Be kind."}},{"name":"short","fields":{"max_tokens":9}}]`
	for name, tt := range map[string]struct {
		s            *server
		secret, want string
	}{
		"an administrator": {s, admin, all}, "another": {s, other, names}, "anybody": {open, "", names}, "an administrator, without authentication": {open, admin, all},
	} {
		got := tt.s.with(tt.secret, "GET", "/api/v1/settings", "")
		if got.status != 200 || gjson.Get(got.body, "presets").Raw != tt.want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := open.do("GET", "/api/v1/settings", ""); gjson.Get(got.body, "version").Str != "v1.2.3" {
		t.Error(got.body)
	}
}
