package api

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// Whatever runs for a token ends when the token does.
func TestRevoke_EndsWhatRuns(t *testing.T) {
	t.Parallel()
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct {
		path, body string
		status     int // 200: it had begun
	}{
		"chat, streamed":       {"/v1/chat/completions", `{"model":"tinychat","stream":true,` + messages + `}`, 200},
		"chat":                 {"/v1/chat/completions", `{"model":"tinychat",` + messages + `}`, 401},
		"chat, n":              {"/v1/chat/completions", `{"model":"tinychat","n":2,` + messages + `}`, 401},
		"v0 chat":              {"/api/v0/chat/completions", `{"model":"tinychat",` + messages + `}`, 401},
		"completion, streamed": {"/v1/completions", `{"model":"tinychat","stream":true,"prompt":"hi"}`, 200},
		"completion":           {"/v1/completions", `{"model":"tinychat","prompt":["hi","ho"]}`, 401},
		"messages, streamed":   {"/v1/messages", `{"model":"tinychat","stream":true,"max_tokens":9,` + messages + `}`, 200},
		"messages":             {"/v1/messages", `{"model":"tinychat","max_tokens":9,` + messages + `}`, 401},
		"native, streamed":     {"/api/v1/chat", `{"model":"tinychat","stream":true,"input":"hi"}`, 200},
		"native":               {"/api/v1/chat", `{"model":"tinychat","input":"hi"}`, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
				Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}},
			}}}))
			secret, made := s.token(access.Token{})
			other, _ := s.token(access.Token{})
			begun, answered := s.begin(secret, tt.path, tt.body, "two")
			s.fake.Wait(t, fakeengine.At("never"))
			if tt.status == 200 {
				<-begun // what the engine has sent may still be on its way to the client
			}
			if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
				t.Fatal(err)
			}
			got := s.wait(answered)
			if got.status != tt.status || !strings.Contains(got.body, "has been revoked") {
				t.Errorf("%d %s", got.status, got.body)
			}
			if kind := gjson.Get(got.body, "error.type").Str; tt.status == 401 && got.header.Get("Www-Authenticate") == "" {
				t.Errorf("%s, %v", kind, got.header)
			}
			if got := s.with(other, "GET", "/v1/models", ""); got.status != 200 {
				t.Errorf("another's: %d %s", got.status, got.body)
			}
		})
	}
}

// What is held back, since it may be the start of a stop string, belongs to the answer when that ends in another way.
func TestRevoke_TellsWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct{ path, body string }{
		"chat":     {"/v1/chat/completions", `{"model":"tinychat","stream":true,"stop":["two threefold"],` + messages + `}`},
		"messages": {"/v1/messages", `{"model":"tinychat","stream":true,"max_tokens":9,"stop_sequences":["two threefold"],` + messages + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chunk := `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"one two"}}]}` + "\n\n" // the client sees "one "
			s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
				Answer: fakeengine.Answer{Text: "three four"}, Cues: []fakeengine.Cue{{Do: fakeengine.Garbage, Bytes: []byte(chunk)}, {Gate: "never"}},
			}}}))
			secret, made := s.token(access.Token{})
			begun, answered := s.begin(secret, tt.path, tt.body, "one ")
			<-begun
			if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
				t.Fatal(err)
			}
			got := s.wait(answered)
			text, fault := strings.Index(got.body, "two"), strings.Index(got.body, "has been revoked")
			if text < 0 || fault < text {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// begin sends a request. The first channel closes once a part of the answer has come, or all of it.
func (s *server) begin(secret, path, body, part string) (begun <-chan struct{}, answered <-chan answer) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", secret)
	came, all := make(chan struct{}), make(chan answer, 1)
	go func() {
		tell := sync.OnceFunc(func() { close(came) })
		defer tell()
		resp, err := s.Client().Do(req)
		if err != nil {
			all <- answer{body: err.Error()}
			return
		}
		defer resp.Body.Close()
		var read strings.Builder
		for buf := make([]byte, 1000); err == nil; {
			var n int
			n, err = resp.Body.Read(buf)
			read.Write(buf[:n])
			if strings.Contains(read.String(), part) {
				tell()
			}
		}
		all <- answer{resp.StatusCode, resp.Header, read.String()}
	}()
	return came, all
}

// wait waits for an answer. How soon it comes is tested where the clock isn't the machine's: see package node.
func (s *server) wait(answered <-chan answer) answer {
	s.t.Helper()
	select {
	case got := <-answered:
		return got
	case <-time.After(time.Minute):
		s.t.Fatal("it goes on")
		return answer{}
	}
}

func TestRevoke_EndsWhatWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script     fakeengine.Script
		path, body string
	}{
		"for a slot": {fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "never"}}}, "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`},
		"for a load": {fakeengine.Script{Load: fakeengine.Load{Gate: "never"}}, "/api/v1/models/load", `{"model":"tinychat"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := serve(t, &tt.script, func(_ *endpoint.Config, s *node.Settings) { inParallel(s, 1) })
			s := guarded(open)
			if tt.script.Load.Gate == "" {
				go func() { _, _ = s.Client().Post(open.URL+tt.path, "", strings.NewReader(tt.body)) }()
				s.fake.Wait(t, fakeengine.At("never"))
			}
			secret, made := s.token(access.Token{})
			answered := make(chan answer, 1)
			go func() { answered <- s.with(secret, "POST", tt.path, tt.body) }()
			testkit.Eventually(t, "a request waits", func() bool { return s.node.Overview().Waiting["lmcaddy/tinychat"] > 0 || tt.script.Load.Gate != "" })
			if tt.script.Load.Gate != "" {
				s.fake.Wait(t, fakeengine.At("never"))
			}
			if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
				t.Fatal(err)
			}
			if got := s.wait(answered); got.status != 401 || !strings.Contains(got.body, "has been revoked") {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

func TestRevoke_EndsABodyThatIsRead(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, made := s.token(access.Token{})
	from := s.part(secret, `{"model":`, "Content-Length: 1000")
	testkit.Eventually(t, "the body is read", func() bool { return s.node.Access.Bodies.Held() > 0 })
	if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	answered := make(chan answer, 1)
	go func() { answered <- read(t, from) }()
	if got := s.wait(answered); got.status != 401 || !strings.Contains(got.body, "has been revoked") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Another server of the same store changes the token behind this one's back.
func TestRevoke_ByAnother(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *server, made access.Token) error
		status int
		want   string
	}{
		"revoked": {func(s *server, made access.Token) error {
			return s.node.Stores.Get().DeleteToken(s.t.Context(), made.ID)
		}, 401, "has been revoked"},
		"expired": {func(s *server, made access.Token) error {
			return s.expire(made)
		}, 401, "has expired"},
		"no scope": {func(s *server, made access.Token) error {
			made.Scopes = []access.Scope{access.ScopeModelsRead}
			_, err := access.New(access.Options{Store: s.node.Stores.Get}).Tokens.Update(s.t.Context(), made)
			return err
		}, 403, "no longer has the scope inference"},
		"no model": {func(s *server, made access.Token) error {
			made.Models = []string{"other/*"}
			_, err := access.New(access.Options{Store: s.node.Stores.Get}).Tokens.Update(s.t.Context(), made)
			return err
		}, 403, "may no longer use the model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "never"}}}))
			secret, made := s.token(access.Token{})
			answered := make(chan answer, 1)
			go func() {
				answered <- s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`)
			}()
			s.fake.Wait(t, fakeengine.At("never"))
			if err := tt.change(s, made); err != nil {
				t.Fatal(err)
			}
			if got := s.wait(answered); got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

func TestRevoke_LeavesWhatMayGoOn(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "go"}}}))
	secret, made := s.token(access.Token{})
	answered := make(chan answer, 1)
	go func() {
		answered <- s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`)
	}()
	s.fake.Wait(t, fakeengine.At("go"))
	made.Name, made.Models, made.Scopes = "other", []string{"lmcaddy/*"}, []access.Scope{access.ScopeInference}
	if _, err := s.node.Access.Tokens.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	for i := range 3 { // each has the tokens in use looked up
		if got := s.with(admin, "PATCH", "/api/v1/tokens/"+made.ID, `{"name":"`+strconv.Itoa(i)+`"}`); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	s.fake.Release("go")
	if got := s.wait(answered); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestRevoke_EndsTheEventsOfADownload(t *testing.T) {
	t.Parallel()
	open, hub := serveWithHub(t)
	hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	s := guarded(open)
	secret, made := s.token(access.Token{})
	id := open.start("acme/tiny-GGUF")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+downloadPath+"/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", secret)
	resp, err := s.Client().Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	answered := make(chan answer, 1)
	go func() {
		body, _ := io.ReadAll(resp.Body)
		answered <- answer{body: string(body)}
	}()
	if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.wait(answered); !strings.Contains(got.body, "has been revoked") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
