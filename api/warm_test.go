package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/warm"
	"github.com/lmcaddy/lmcaddy/warm/warmtest"
)

const chatModel = "lmcaddy/tinychat"

// owners returns whose states a list has, each with the model's name.
func owners(list answer) []string {
	all := []string{}
	for _, s := range gjson.Get(list.body, "states").Array() {
		all = append(all, s.Get("owner").Str+" "+s.Get("model").Str)
	}
	slices.Sort(all)
	return all
}

func TestWarm_List(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if got := s.do("GET", "/api/v1/warm", ""); got.status != 200 || got.body != `{"states":[]}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	warmtest.Keep(t, s.node.Warm, chatModel, prefix.State{Tokens: 1234, Bytes: 5678, Conversation: "r"})
	got := gjson.Get(s.do("GET", "/api/v1/warm", "").body, "states.0")
	for field, want := range map[string]string{"model": chatModel, "owner": "", "tokens": "1234", "size_bytes": "5678"} {
		if v := got.Get(field); v.String() != want {
			t.Errorf("%s is %s, want %q", field, v.Raw, want)
		}
	}
	if got.Get("created_at").Time().IsZero() || got.Get("last_used_at").Time().IsZero() || len(got.Map()) != 6 {
		t.Errorf("%s", got.Raw)
	}
}

// The list says whether states pay, of models of which that is known and which the token may use.
func TestWarm_Rates(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	for _, model := range []string{chatModel, "x/slow", "x/unknown"} {
		shelf, err := s.node.Warm.Shelf(warm.Print{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		defer shelf.Close()
		shelf.Processed(1000, 100*time.Millisecond)
		switch model {
		case chatModel:
			shelf.Restored(2e9, time.Second)
			shelf.Saved(1000, 1e8, time.Second)
		case "x/slow":
			shelf.Saved(1000, 1e8, time.Second)
		}
	}
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	some, _ := s.token(access.Token{Models: []string{"x/*"}})
	fast := `{"model":"` + chatModel + `","pays_from_tokens":1334,"prompt_tokens_per_second":10000,"bytes_per_token":100000,"restore_bytes_per_second":2000000000}`
	slow := `{"model":"x/slow","pays_from_tokens":null,"prompt_tokens_per_second":10000,"bytes_per_token":100000,"restore_bytes_per_second":100000000}`
	for secret, want := range map[string]string{admin: fast + "," + slow, some: slow} {
		if got := s.with(secret, "GET", "/api/v1/warm", ""); got.body != `{"states":[],"rates":[`+want+`]}` {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// A token sees and deletes the states of its own conversations, an administrator everybody's.
func TestWarm_BelongsToItsOwner(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	secret, own := s.token(access.Token{})
	narrow, limited := s.token(access.Token{Models: []string{"other/*"}})
	keep := func(owner, model string) { warmtest.Keep(t, s.node.Warm, model, prefix.State{Owner: owner}) }
	for _, model := range []string{chatModel, "other/model"} {
		keep("user:ann", model)
		keep(own.ID, model)
		keep(limited.ID, model)
	}
	want := func(who, secret string, entries ...string) {
		t.Helper()
		slices.Sort(entries)
		if diff := cmp.Diff(entries, owners(s.with(secret, "GET", "/api/v1/warm", ""))); diff != "" {
			t.Errorf("%s sees (-want +got):\n%s", who, diff)
		}
	}
	remove := func(secret, query string, deleted int) {
		t.Helper()
		got := s.with(secret, "DELETE", "/api/v1/warm"+query, "")
		if got.status != 200 || got.body != `{"deleted":`+strconv.Itoa(deleted)+`,"size_bytes":`+strconv.Itoa(deleted)+`}` {
			t.Errorf("%s: %d %s, want %d", query, got.status, got.body, deleted)
		}
	}
	want("a token", secret, own.ID+" "+chatModel, own.ID+" other/model")
	want("a token for some models", narrow, limited.ID+" other/model")

	remove(secret, "?model=tinychat", 1)
	want("the token", secret, own.ID+" other/model")
	want("an administrator", admin, "user:ann "+chatModel, "user:ann other/model", own.ID+" other/model", limited.ID+" "+chatModel, limited.ID+" other/model")
	remove(secret, "?model=Other/Model", 1) // there is no such model any more
	remove(narrow, "", 1)
	want("an administrator", admin, "user:ann "+chatModel, "user:ann other/model", limited.ID+" "+chatModel)
	remove(admin, "?model="+chatModel, 2)
	remove(admin, "", 1)
	remove(admin, "", 0)

	if got := s.with(admin, "DELETE", "/api/v1/warm?model=nobody", ""); got.status != 404 || got.code() != "model_not_found" {
		t.Errorf("an unknown model: %d %s", got.status, got.body)
	}
	if got := s.with(narrow, "DELETE", "/api/v1/warm?model=tinychat", ""); got.status != 404 {
		t.Errorf("a model that the token may not use: %d %s", got.status, got.body)
	}
}

// What is deleted takes its states along.
func TestWarm_GoesWithAResponse(t *testing.T) {
	t.Parallel()
	for _, path := range []struct{ create, body, id, delete string }{
		{"/api/v1/chat", `{"model":"tinychat","input":"hi"}`, "response_id", "/api/v1/responses/"},
		{"/v1/responses", `{"model":"tinychat","input":"hi"}`, "id", "/v1/responses/"},
	} {
		s := serve(t, nil)
		made := s.do("POST", path.create, path.body)
		id := gjson.Get(made.body, path.id).Str
		if made.status != 200 || id == "" {
			t.Fatalf("%d %s", made.status, made.body)
		}
		warmtest.Keep(t, s.node.Warm, chatModel, prefix.State{Conversation: id})
		warmtest.Keep(t, s.node.Warm, chatModel, prefix.State{Conversation: "another"})
		if got := s.do("DELETE", path.delete+id, ""); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if left := s.node.Warm.List(); len(left) != 1 || left[0].Conversation != "another" {
			t.Errorf("%s: %+v are left", path.create, left)
		}
	}
}

// slowPrompts is an engine that takes a while for a prompt. Where it takes none, no states are kept.
func slowPrompts() *fakeengine.Script {
	return &fakeengine.Script{Rules: []fakeengine.Rule{{FirstDelay: 300 * time.Millisecond}}}
}

// Whatever an answer is made of, the supervisor learns what it has made of its slot, whose state is saved then.
func TestWarm_AnAnswerOfAnyKindIsSaved(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string][2]string{
		"chat":          {"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"%s"}]}`},
		"chat, stream":  {"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"%s"}],"stream":true}`},
		"chat, stopped": {"/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"%s"}],"stop":["nowhere"],"stream":true}`},
		"native chat":   {"/api/v1/chat", `{"model":"tinychat","input":"%s"}`},
		"responses":     {"/v1/responses", `{"model":"tinychat","input":"%s","stream":true}`},
		"messages":      {"/v1/messages", `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":"%s"}]}`},
		"completions":   {"/v1/completions", `{"model":"tinychat","prompt":"%s"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, slowPrompts(), func(_ *endpoint.Config, settings *node.Settings) {
				settings.Warm = node.WarmSettings{SaveAfter: time.Millisecond, MinTokens: 1}
			})
			warmtest.MakeRoom(s.node.Warm)
			if got := s.do("POST", ask[0], fmt.Sprintf(ask[1], strings.Repeat("hi ", 300))); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			testkit.Eventually(t, "there is a state", func() bool { return len(s.node.Warm.List()) > 0 })
		})
	}
}
