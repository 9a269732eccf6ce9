package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// serveLogs is an API whose log has some records, and who may read it.
func serveLogs(t *testing.T, options ...option) (*server, *slog.Logger, *httptest.Server) {
	t.Helper()
	recent := logs.New()
	log := slog.New(recent.Handler("lm", slog.DiscardHandler, false))
	var config endpoint.Config
	s := serve(t, nil, append(options, func(c *endpoint.Config, _ *node.Settings) {
		c.Logs = recent
		config = *c
	})...)
	all := New(config)
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all.ServeHTTP(w, r.WithContext(endpoint.WithIdentity(r.Context(), access.Local)))
	}))
	t.Cleanup(func() {
		admin.CloseClientConnections()
		admin.Close()
	})
	return s, log, admin
}

// askLogs asks an administrator's site.
func askLogs(t *testing.T, admin *httptest.Server, query, lastID string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin.URL+"/api/v1/logs"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := admin.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestLogs(t *testing.T) {
	t.Parallel()
	_, log, admin := serveLogs(t)
	log.Info("loading model", "instance", "lmcaddy/tinychat")
	log.Debug("engine", "instance", "lmcaddy/tinychat", "line", "srv: hello")
	log.Warn("a model file can't be used", "model", "x/y", "reason", "it is cut off")
	log.Info("other", "request", "req_7")
	for query, want := range map[string][]string{
		"":                            {"loading model", "a model file can't be used", "other"},
		"?limit=1":                    {"other"},
		"?limit=0":                    nil,
		"?level=debug&limit=9":        {"loading model", "engine", "a model file can't be used", "other"},
		"?level=WARN":                 {"a model file can't be used"},
		"?engine=true&level=warn":     {"engine", "a model file can't be used"},
		"?model=tinychat":             {"loading model"},
		"?model=x/y":                  {"a model file can't be used"},
		"?request=req_7":              {"other"},
		"?since=2999-01-01T00:00:00Z": nil,
	} {
		resp := askLogs(t, admin, query, "")
		var got resource.Logs
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK || got.Records == nil {
			t.Errorf("%s: %d, %v", query, resp.StatusCode, err)
		}
		var messages []string
		for _, r := range got.Records {
			messages = append(messages, r.Message)
		}
		if diff := cmp.Diff(want, messages); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for query, param := range map[string]string{"?limit=x": "limit", "?limit=-1": "limit", "?limit=10001": "limit", "?level=loud": "level", "?since=yesterday": "since", "?follow=perhaps": "follow", "?engine=2": "engine"} {
		resp := askLogs(t, admin, query, "")
		var got struct {
			Error struct{ Param string }
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusBadRequest || got.Error.Param != param {
			t.Errorf("%s: %d, %q", query, resp.StatusCode, got.Error.Param)
		}
	}
}

func TestLogs_AreForAdministrators(t *testing.T) {
	t.Parallel()
	s, _, _ := serveLogs(t)
	if got := s.do("GET", "/api/v1/logs", ""); got.status != 401 {
		t.Errorf("anybody: %d", got.status)
	}
	for scope, want := range map[access.Scope]int{access.ScopeInference: 403, access.ScopeModelsManage: 403, access.ScopeAdmin: 200} {
		secret, _, err := s.node.Access.Tokens.Create(t.Context(), access.Token{Name: "x", Scopes: []access.Scope{scope}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.do("GET", "/api/v1/logs", "", "Authorization", "Bearer "+secret); got.status != want {
			t.Errorf("%s: %d, want %d", scope, got.status, want)
		}
	}
}

// event reads the next event that isn't a comment.
func event(t *testing.T, stream *bufio.Scanner) (id string, r resource.LogRecord) {
	t.Helper()
	for stream.Scan() {
		line := stream.Text()
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			id = rest
		}
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(rest), &r); err != nil {
				t.Fatal(err)
			}
			return id, r
		}
	}
	t.Fatalf("the stream ended: %v", stream.Err())
	return "", r
}

func TestLogs_Follow(t *testing.T) {
	t.Parallel()
	exiting := make(chan struct{})
	_, log, admin := serveLogs(t, func(c *endpoint.Config, _ *node.Settings) { c.Exiting = exiting })
	log.Info("0")
	log.Info("1")
	resp := askLogs(t, admin, "?follow=true&limit=1", "")
	stream := bufio.NewScanner(resp.Body)
	if _, r := event(t, stream); r.Message != "1" {
		t.Errorf("the first is %q", r.Message)
	}
	log.Info("2", "took", time.Second)
	id, r := event(t, stream)
	if r.Message != "2" || r.ID != id || string(r.Fields) != `{"took":"1s"}` || r.Level != "info" {
		t.Errorf("%q: %+v", id, r)
	}
	_ = resp.Body.Close()
	log.Info("3")
	log.Info("4")
	resp = askLogs(t, admin, "?follow=true&limit=1", id)
	stream = bufio.NewScanner(resp.Body)
	for _, want := range []string{"3", "4"} {
		if _, r := event(t, stream); r.Message != want {
			t.Errorf("after %s: %q, want %q", id, r.Message, want)
		}
	}
	close(exiting)
	for stream.Scan() {
	}
	if err := stream.Err(); err != nil {
		t.Errorf("the end of the server cuts the stream: %v", err)
	}
	if resp := askLogs(t, admin, "?follow=true", "nonsense"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an id that is none: %d", resp.StatusCode)
	}
}

// What is logged of a request has its id, also where it is found out whose it is.
func TestLogs_HaveTheRequestsID(t *testing.T) {
	t.Parallel()
	recent := logs.New()
	a := New(endpoint.Config{
		Node: func(context.Context) (*node.Node, error) { return nil, errors.New("a fault") },
		Log:  slog.New(recent.Handler("lm", slog.DiscardHandler, false)), Logs: recent,
	})
	for name, header := range map[string]string{"its own": "mine-1", "a new one": ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1/settings", nil)
		if header != "" {
			r.Header.Set("X-Request-Id", header)
		}
		r = r.WithContext(endpoint.WithIdentity(r.Context(), access.Local))
		a.ServeHTTP(w, r)
		id := w.Header().Get("X-Request-Id")
		found := recent.Last(1, logs.Filter{Request: id})
		if len(found) != 1 || header != "" && id != header {
			t.Errorf("%s: the response has the id %q, and %d records have it", name, id, len(found))
		}
	}
}

// How a request to a model went is found by its id. What was asked and answered isn't.
func TestLogs_TellHowARequestWent(t *testing.T) {
	t.Parallel()
	recent := logs.New()
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.Logs = recent })
	got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"my secret"}]}`, "X-Request-Id", "mine")
	if got.status != 200 {
		t.Fatal(got.body)
	}
	for {
		reader := recent.Follow(logs.Position{}, logs.Filter{Level: slog.LevelDebug, Request: "mine"})
		records, err := reader.Next(t.Context())
		reader.Close()
		if err != nil {
			t.Fatal(err)
		}
		if last := records[len(records)-1]; last.Message == "a request ended" {
			fields := string(last.Object())
			for _, want := range []string{`"model":"lmcaddy/tinychat"`, `"status":200`, `"outcome":"ok"`, `"output_tokens":`, `"duration":"`} {
				if !strings.Contains(fields, want) {
					t.Errorf("%s is not in %s", want, fields)
				}
			}
			break
		}
	}
	all := recent.Last(99, logs.Filter{Level: slog.LevelDebug})
	for _, r := range all {
		if text := r.Message + string(r.Object()); strings.Contains(text, "my secret") {
			t.Error(text)
		}
	}
}

func TestAdmit_TheRequestKeepsItsID(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	var config endpoint.Config
	config.Node = func(context.Context) (*node.Node, error) { return s.node, nil }
	config.Log = slog.New(slog.DiscardHandler)
	w := httptest.NewRecorder()
	admitted, ok := New(config).Admit(w, httptest.NewRequest(http.MethodGet, "/api/v1/settings", nil), access.Local, "")
	if !ok {
		t.Fatal(w.Body)
	}
	New(config).ServeHTTP(w, admitted)
	if got, want := w.Header().Get("X-Request-Id"), logs.RequestOf(admitted.Context()); got != want || want == "" {
		t.Errorf("the response has the id %q, the request %q", got, want)
	}
}

// Administrators see the configuration in force, and nobody else does.
func TestSettings_Configuration(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := New(endpoint.Config{
		Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler),
		Describe: func() resource.Configuration { return resource.Configuration{File: "/etc/Caddyfile"} },
	})
	for name, tt := range map[string]struct {
		who  *access.Identity
		want bool
	}{
		"anybody":       {nil, false},
		"a token":       {&access.Identity{Scopes: []access.Scope{access.ScopeInference}}, false},
		"administrator": {access.Local, true},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/settings", nil)
		a.ServeHTTP(w, r.WithContext(endpoint.WithIdentity(r.Context(), tt.who)))
		if got := strings.Contains(w.Body.String(), "/etc/Caddyfile"); got != tt.want || w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
