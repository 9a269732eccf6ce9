package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// listed lists requests with a token; empty: without one.
func (s *server) listed(secret, query string) []resource.Request {
	s.t.Helper()
	var header []string
	if secret != "" {
		header = []string{"Authorization", "Bearer " + secret}
	}
	got := s.do("GET", "/api/v1/requests"+query, "", header...)
	var list resource.Requests
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
		s.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	return list.Requests
}

func ids(list []resource.Request) (ids []string) {
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// endedAs waits until a request has ended: a client sees the end of the answer before.
func (s *server) endedAs(secret, id, outcome string) resource.Request {
	s.t.Helper()
	var found resource.Request
	testkit.Eventually(s.t, id+" has ended", func() bool {
		list := s.listed(secret, "")
		i := slices.IndexFunc(list, func(r resource.Request) bool { return r.ID == id && r.Outcome != "" })
		if i >= 0 {
			found = list[i]
		}
		return i >= 0
	})
	if found.Outcome != outcome {
		s.t.Errorf("%+v, want %s", found, outcome)
	}
	return found
}

func TestRequests_InProgressAndEnded(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}, Cues: []fakeengine.Cue{{After: 1, Gate: "go on"}},
	}}})
	if got := s.listed("", ""); len(got) != 0 {
		t.Errorf("before any: %v", ids(got))
	}
	done := make(chan answer, 1)
	go func() {
		done <- s.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`, "X-Request-Id", "chat")
	}()
	s.fake.Wait(t, fakeengine.At("go on"))
	list := s.listed("", "")
	if len(list) != 1 || list[0].ID != "chat" || list[0].Model != "lmcaddy/tinychat" || list[0].Seconds != 0 || list[0].Outcome != "" || list[0].Dialect != "openai" {
		t.Errorf("in progress: %+v", list)
	}
	s.do("POST", "/v1/messages", `{"model":"nope","max_tokens":3,"messages":[{"role":"user","content":"hi"}]}`, "X-Request-Id", "refused")
	s.do("GET", "/v1/models", "", "X-Request-Id", "to no model")
	s.fake.Release("go on")
	<-done
	chat := s.endedAs("", "chat", "ok")
	if chat.TokensIn != 7 || chat.TokensOut != 2 || chat.Seconds <= 0 || chat.FirstToken <= 0 || chat.Status != 200 || chat.Instance != "lmcaddy/tinychat" || chat.Inspected {
		t.Errorf("%+v", chat)
	}
	for query, want := range map[string][]string{
		"":                               {"refused", "chat"},
		"?limit=1":                       {"refused"},
		"?limit=0":                       nil,
		"?limit=&model=&outcome=":        {"refused", "chat"},
		"?model=tinychat":                {"chat"},
		"?model=other":                   nil,
		"?outcome=ok":                    {"chat"},
		"?outcome=model_not_found":       {"refused"},
		"?outcome=ok&model=x&limit=9":    nil,
		"?model=lmcaddy/tinychat&limit=": {"chat"},
	} {
		if diff := cmp.Diff(want, ids(s.listed("", query))); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for query, code := range map[string]string{"?limit=-1": "invalid_value", "?limit=10001": "invalid_value", "?limit=null": "invalid_value", "?inspect=true": "unknown_parameter", "?limit=1&limit=2": "duplicate_parameter"} {
		if got := s.do("GET", "/api/v1/requests"+query, ""); got.status != 400 || got.code() != code {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// A response in the background is in progress until it has been made, whatever became of the request that began it.
func TestRequests_AResponseInTheBackground(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Text: "one two"}, Cues: []fakeengine.Cue{{After: 1, Gate: "go on"}}}}})
	s.background("X-Request-Id", "back")
	s.fake.Wait(t, fakeengine.At("go on"))
	if list := s.listed("", ""); len(list) != 1 || list[0].ID != "back" || list[0].Outcome != "" {
		t.Errorf("%+v", list)
	}
	s.fake.Release("go on")
	if ended := s.endedAs("", "back", "ok"); ended.TokensOut != 2 {
		t.Errorf("%+v", ended)
	}
	if list := s.listed("", ""); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestRequests_BelongToTheirOwners(t *testing.T) {
	t.Parallel()
	open := serve(t, nil, inspecting(1))
	s := guarded(open)
	ann, made := s.token(access.Token{})
	bob, _ := s.token(access.Token{Models: []string{"lmcaddy/*"}})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	reader, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead}})
	for id, secret := range map[string]string{"anns": ann, "bobs": bob} {
		s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`, "X-Request-Id", id)
		s.endedAs(secret, id, "ok")
	}
	open.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`, "X-Request-Id", "anybodys")
	open.endedAs("", "anybodys", "ok")
	wrong := admin[:len(admin)-4] + "AAAA"
	for name, tt := range map[string]struct {
		s      *server
		secret string
		want   []string
	}{
		"one's own":                             {s, ann, []string{"anns"}},
		"another's own":                         {s, bob, []string{"bobs"}},
		"an administrator":                      {s, admin, []string{"anns", "anybodys", "bobs"}},
		"anybody":                               {open, "", []string{"anybodys"}},
		"a token without authentication":        {open, ann, []string{"anybodys"}},
		"a wrong one without authentication":    {open, wrong, []string{"anybodys"}},
		"an administrator's, no authentication": {open, admin, []string{"anns", "anybodys", "bobs"}},
	} {
		list := tt.s.listed(tt.secret, "")
		got := ids(list)
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, r := range list {
			if want := r.ID == "anybodys" && len(tt.want) == 3; r.Inspected != want {
				t.Errorf("%s: %s: inspected %v", name, r.ID, r.Inspected)
			}
		}
	}
	if got := s.with(reader, "GET", "/api/v1/requests", ""); got.status != 403 || !strings.Contains(got.body, "missing_scope") {
		t.Errorf("without the scope: %d %s", got.status, got.body)
	}
	made.Models = []string{"other/*"}
	if _, err := s.node.Access.Tokens.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if list := s.listed(ann, ""); len(list) != 0 {
		t.Errorf("of a model that is no longer hers: %v", ids(list))
	}
}
