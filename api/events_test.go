package api

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
)

// watcher reads GET /api/v1/events.
type watcher struct {
	t     *testing.T
	lines *bufio.Scanner
	id    string // of the last event
	end   context.CancelFunc
}

// watch begins to read events. The first is events.start.
func (s *server) watch(secret, query, lastID string) (w *watcher, isResumed bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/events"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != endpoint.TypeEvents {
		s.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	w = &watcher{t: s.t, lines: bufio.NewScanner(resp.Body), end: cancel}
	w.lines.Buffer(nil, 1<<20)
	start, _ := w.next()
	if start.Get("type").Str != "events.start" || !start.Get("time").Exists() {
		s.t.Fatalf("the first event: %s", start)
	}
	return w, start.Get("resumed").Bool()
}

// next returns the data of the next event; ok is false at the end of the stream.
func (w *watcher) next() (data gjson.Result, ok bool) {
	w.t.Helper()
	name := ""
	for w.lines.Scan() {
		line := w.lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			w.id = id
		}
		if is, ok := strings.CutPrefix(line, "event: "); ok {
			name = is
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = gjson.Parse(text)
			if data.Get("type").Str != name {
				w.t.Errorf("an event %s is %s", name, text)
			}
			return data, true
		}
	}
	return data, false
}

// until reads events up to one of a type, and returns all of them.
func (w *watcher) until(last string) (all []gjson.Result) {
	w.t.Helper()
	for {
		e, ok := w.next()
		if !ok {
			w.t.Fatalf("the stream ends before %s: %v, after %v", last, w.lines.Err(), kindsOfEvents(all))
		}
		if all = append(all, e); e.Get("type").Str == last {
			return all
		}
	}
}

// kindsOfEvents are the types of events, each once in a row.
func kindsOfEvents(all []gjson.Result) (kinds []string) {
	for _, e := range all {
		kinds = append(kinds, e.Get("type").Str)
	}
	return slices.Compact(kinds)
}

func (s *server) chatAs(secret, id string) {
	s.t.Helper()
	header := []string{"X-Request-Id", id}
	if secret != "" {
		header = append(header, "Authorization", "Bearer "+secret)
	}
	if got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`, header...); got.status != 200 {
		s.t.Fatal(got.body)
	}
}

func TestEvents_WhatHappensToAModel(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Duration: 600 * time.Millisecond, Steps: 20, Gate: "loaded"}})
	w, _ := s.watch("", "", "")
	chatted := make(chan struct{})
	go func() {
		defer close(chatted)
		s.chatAs("", "chat")
	}()
	all := w.until("model_load.progress")
	s.fake.Release("loaded")
	all = append(all, w.until("request.end")...)
	<-chatted
	if diff := cmp.Diff([]string{"request.start", "model_load.start", "model_load.progress", "model_load.end", "request.end"}, kindsOfEvents(all)); diff != "" {
		t.Error(diff)
	}
	for _, e := range all {
		switch kind := e.Get("type").Str; {
		case strings.HasPrefix(kind, "model_load."):
			progress := e.Get("progress")
			if e.Get("model").Str != "lmcaddy/tinychat" || e.Get("instance_id").Str != "lmcaddy/tinychat" || (kind == "model_load.end") != (e.Get("load_time_seconds").Num > 0) ||
				(kind == "model_load.progress") != (progress.Num > 0 && progress.Num <= 1) {
				t.Error(e)
			}
		case e.Get("request.id").Str != "chat" || e.Get("request.model").Str != "lmcaddy/tinychat" || (kind == "request.end") != e.Get("request.duration_seconds").Exists():
			t.Error(e)
		}
	}
	s.do("POST", "/api/v1/models/unload", `{"instance_id":"lmcaddy/tinychat"}`)
	for _, e := range w.until("model_unload.end") {
		if e.Get("reason").Str != "unload" || e.Get("instance_id").Str != "lmcaddy/tinychat" {
			t.Error(e)
		}
	}
	link(t, shipped, filepath.Join(s.node.Home().Models(), "acme", "more", "more.gguf"))
	testkit.Eventually(t, "the new model is listed", func() bool { return gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.#").Int() == 2 })
	if all := w.until("models.changed"); all[len(all)-1].Get("model").Str != "acme/more" {
		t.Error(all)
	}
}

func TestEvents_AFailedLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("cannot read /secret/folder/x.gguf")}})
	w, _ := s.watch("", "?types=model_load.*,model_unload.*", "")
	s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`)
	all := w.until("model_load.failed")
	e := all[len(all)-1].Get("error")
	if e.Get("code").Str != "model_load_failed" || !strings.Contains(e.Get("message").Str, "x.gguf") || strings.Contains(e.Get("message").Str, "secret") || len(kindsOfEvents(all)) > 3 {
		t.Error(all)
	}
}

func TestEvents_ADownload(t *testing.T) {
	t.Parallel()
	s, hub := serveWithHub(t)
	w, _ := s.watch("", "?types=download.*,models.changed", "")
	s.do("GET", "/api/v1/models", "") // the first scan
	id := s.start(hub.URL + "/acme/tiny-GGUF")
	all := w.until("download.completed")
	kinds := kindsOfEvents(all)
	if kinds[0] != "download.start" || !slices.Contains(kinds, "models.changed") {
		t.Error(kinds)
	}
	for _, e := range all {
		if kind := e.Get("type").Str; strings.HasPrefix(kind, "download.") && (e.Get("job.job_id").Str != id || e.Get("job.model").Str != "acme/tiny") || kind == "models.changed" && e.Get("model").Str != "acme/tiny" {
			t.Error(e)
		}
	}
}

func TestEvents_GoOnAfterABreak(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	w, resumed := s.watch("", "?types=request.*", "")
	if resumed {
		t.Error("the first is resumed")
	}
	for _, id := range []string{"one", "two"} {
		s.chatAs("", id)
		w.until("request.end")
	}
	last := w.id
	w.end()
	s.chatAs("", "three")
	w, resumed = s.watch("", "?types=request.*", last)
	if all := w.until("request.end"); !resumed || len(all) != 2 || all[0].Get("request.id").Str != "three" {
		t.Errorf("resumed %v: %v", resumed, all)
	}
	other := serve(t, nil)
	w, resumed = other.watch("", "", last)
	if e, _ := w.next(); resumed || e.Get("type").Str != "events.missed" || e.Get("number").Raw != "null" {
		t.Errorf("an earlier process's: %v, %s", resumed, e)
	}
	for _, wrong := range []string{"nonsense", "null", last[:5]} {
		if got := s.do("GET", "/api/v1/events", "", "Last-Event-ID", wrong); got.status != 400 || got.code() != "invalid_value" {
			t.Errorf("%s: %d %s", wrong, got.status, got.body)
		}
	}
}

// A follower that has fallen behind learns how many events it has missed, and nobody else's number.
func TestEvents_Missed(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	other, _ := s.token(access.Token{})
	w, _ := s.watch(admin, "", "")
	const requests = 20_000
	for i := range requests {
		summary := record.Summary{ID: fmt.Sprint(i), Model: "lmcaddy/tinychat"}
		s.node.Record.Requests.End(s.node.Record.Requests.Begin(&summary), &summary)
	}
	begin := w.id
	w.end()
	w, resumed := s.watch(admin, "", begin)
	e, _ := w.next()
	missed := int(e.Get("number").Int())
	if !resumed || e.Get("type").Str != "events.missed" || missed < requests || missed >= 2*requests {
		t.Errorf("resumed %v: %s", resumed, e)
	}
	for n := missed; n < 2*requests; n++ {
		if e, _ := w.next(); !strings.HasPrefix(e.Get("type").Str, "request.") {
			t.Fatalf("event %d: %s", n, e)
		}
	}
	w, _ = s.watch(other, "", begin)
	if e, _ := w.next(); e.Get("type").Str != "events.missed" || e.Get("number").Raw != "null" {
		t.Errorf("another's: %s", e)
	}
}

func TestEvents_Rights(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	withOthers(open)
	s := guarded(open)
	all := map[string]string{} // by name, the token
	for name, token := range map[string]access.Token{
		"admin": {Scopes: []access.Scope{access.ScopeAdmin}}, "ann": {}, "bob": {}, "reader": {Scopes: []access.Scope{access.ScopeModelsRead}},
		"narrow": {Models: []string{"lmcaddy/tinyembed"}},
	} {
		all[name], _ = s.token(token)
	}
	watchers := map[string]*watcher{}
	for name, secret := range all {
		watchers[name], _ = s.watch(secret, "", "")
	}
	watchers["anybody"], _ = open.watch("", "", "")
	watchers["admin, without authentication"], _ = open.watch(all["admin"], "", "")
	s.chatAs(all["ann"], "anns")
	open.chatAs("", "anybodys")
	if got := s.with(all["ann"], "POST", "/v1/embeddings", `{"model":"tinyembed","input":"hi"}`, "X-Request-Id", "anns2"); got.status != 200 {
		t.Fatal(got.body)
	}
	s.with(all["ann"], "POST", "/api/v1/models/unload", `{"instance_id":"lmcaddy/tinyembed"}`)
	for name, want := range map[string]struct {
		requests []string
		models   []string
	}{
		"admin":                         {[]string{"anns", "anybodys", "anns2"}, []string{"lmcaddy/tinychat", "lmcaddy/tinyembed"}},
		"admin, without authentication": {[]string{"anns", "anybodys", "anns2"}, []string{"lmcaddy/tinychat", "lmcaddy/tinyembed"}},
		"ann":                           {[]string{"anns", "anns2"}, []string{"lmcaddy/tinychat", "lmcaddy/tinyembed"}},
		"bob":                           {nil, []string{"lmcaddy/tinychat", "lmcaddy/tinyembed"}},
		"reader":                        {nil, []string{"lmcaddy/tinychat", "lmcaddy/tinyembed"}},
		"narrow":                        {nil, []string{"lmcaddy/tinyembed"}},
		"anybody":                       {[]string{"anybodys"}, []string{"lmcaddy/tinychat", "lmcaddy/tinyembed"}},
	} {
		var requests, models []string
		for _, e := range watchers[name].until("model_unload.end") {
			if id := e.Get("request.id").Str; id != "" && !slices.Contains(requests, id) {
				requests = append(requests, id)
			}
			if model := e.Get("model").Str; model != "" && !slices.Contains(models, model) {
				models = append(models, model)
			}
			if name == "narrow" && strings.Contains(e.Raw, "tinychat") {
				t.Errorf("%s: %s", name, e)
			}
		}
		if diff := cmp.Diff(want.requests, requests) + cmp.Diff(want.models, models); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, tt := range map[string]struct {
		token, query string
		status       int
	}{
		"records":             {"ann", "?types=log.record", 403},
		"requests":            {"reader", "?types=models.changed,request.end", 403},
		"no such type":        {"ann", "?types=nope", 400},
		"nothing between":     {"ann", "?types=download.*,,models.changed", 400},
		"a star in the midst": {"ann", "?types=*.start", 400},
		"no such level":       {"admin", "?types=log.record&level=loud", 400},
		"another parameter":   {"admin", "?type=log.record", 400},
	} {
		if got := s.with(all[tt.token], "GET", "/api/v1/events"+tt.query, ""); got.status != tt.status {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.do("GET", "/api/v1/events", ""); got.status != 401 {
		t.Errorf("without a token: %d", got.status)
	}
}

// Whoever loses rights doesn't go on seeing what they allowed.
func TestEvents_EndWithTheRights(t *testing.T) {
	t.Parallel()
	for name, narrow := range map[string]func(*access.Token){
		"a model":       func(t *access.Token) { t.Models = []string{"other/*"} },
		"administrator": func(t *access.Token) { t.Scopes = access.DefaultScopes },
		"requests":      func(t *access.Token) { t.Scopes = []access.Scope{access.ScopeModelsRead} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := guarded(serve(t, nil))
			secret, made := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
			w, _ := s.watch(secret, "", "")
			narrow(&made)
			if _, err := s.node.Access.Tokens.Update(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			for w.lines.Scan() {
				if strings.Contains(w.lines.Text(), "have changed") {
					return
				}
			}
			t.Errorf("it ends without a word: %v", w.lines.Err())
		})
	}
}

func TestEvents_Records(t *testing.T) {
	t.Parallel()
	recent, exiting := logs.New(), make(chan struct{})
	log := slog.New(recent.Handler("lm", slog.DiscardHandler, false))
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.Logs, c.Exiting = recent, exiting })
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	log.Info("before")
	w, _ := s.watch(admin, "?types=log.record,request.end&level=warn", "")
	log.Info("not this one")
	log.Warn("first", "n", 1)
	if e, _ := w.next(); e.Get("record.message").Str != "first" || e.Get("record.level").Str != "warn" || e.Get("record.fields.n").Int() != 1 {
		t.Error(e)
	}
	last := w.id
	w.end()
	log.Warn("second")
	s.chatAs("", "chat")
	w, resumed := s.watch(admin, "?types=log.record,request.end&level=warn", last)
	kinds := map[string]gjson.Result{} // in any order
	for range 2 {
		e, _ := w.next()
		kinds[e.Get("type").Str] = e
	}
	if !resumed || kinds["log.record"].Get("record.message").Str != "second" || kinds["request.end"].Get("request.id").Str != "chat" {
		t.Errorf("resumed %v: %v", resumed, kinds)
	}
	close(exiting)
	if e, ok := w.next(); ok || w.lines.Err() != nil {
		t.Errorf("the end of the server: %s, %v", e, w.lines.Err())
	}
}
