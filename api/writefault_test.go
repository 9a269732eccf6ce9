package api

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// writer is a client's connection that can't be flushed, and of which writes may go wrong.
type writer struct {
	http.ResponseWriter

	write func() error
}

func (w writer) Write(p []byte) (int, error) {
	if w.write != nil {
		if err := w.write(); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// to has a request answered to a writer, and tells what it got.
func (s *server) to(path, body string, write func() error) (got *httptest.ResponseRecorder) {
	s.t.Helper()
	got = httptest.NewRecorder()
	req := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	s.Config.Handler.ServeHTTP(writer{got, write}, req)
	return got
}

func TestWrite_WhatCannotBeFlushedIsSentAllTheSame(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for name, tt := range dialectAsks {
		for _, stream := range []string{"true", "false"} {
			got := s.to(tt.path, `{"model":"tinychat","stream":`+stream+`,`+tt.body+`}`, nil)
			end := "}"
			if stream == "true" {
				end = "[DONE]"
				if endOf[name] != "" {
					end = endOf[name]
				}
			}
			if got.Code != 200 || !strings.Contains(got.Body.String(), "engine.") || !strings.Contains(got.Body.String(), end) {
				t.Errorf("%s %s: %d %s", name, stream, got.Code, got.Body)
			}
		}
	}
}

// A model that failed has worked again when it has answered a request to its end, not when a client couldn't be told.
func TestWrite_AFailureIsNoSuccessOfTheModel(t *testing.T) {
	t.Parallel()
	for name, tt := range dialectAsks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("a bad file")}}
			healthy := fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Gate: "end"}}}}}
			s := serve(t, &fakeengine.Script{Cases: []fakeengine.Case{{Start: 1, Script: broken}, {Script: healthy}}})
			failures := func() int {
				for _, f := range s.node.Overview().Failing {
					return f.Count
				}
				return 0
			}
			if got := s.chat(""); got.status != 503 || failures() != 1 {
				t.Fatalf("%d %s, %d failures", got.status, got.body, failures())
			}
			s.to(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, func() error { return errors.New("connection reset") })
			s.fake.Release("end")
			if failures() != 1 {
				t.Errorf("%d failures, want the one", failures())
			}
			if got := s.chat(""); got.status != 200 || failures() != 0 {
				t.Errorf("%d %s, %d failures", got.status, got.body, failures())
			}
		})
	}
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func panicsInTheClient() error { panic("a fault of the test's") }

func TestPanic_OfAParallelChoiceKeepsItsStack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, body string }{
		"chat":       {"/v1/chat/completions", `"n":2,"messages":[{"role":"user","content":"hi"}]`},
		"completion": {"/v1/completions", `"n":2,"prompt":"hi"`},
		"alone":      {"/v1/chat/completions", `"messages":[{"role":"user","content":"hi"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := new(logged)
			s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
			func() {
				defer func() {
					if f := recover(); f != http.ErrAbortHandler { //nolint:errorlint // net/http compares it like that
						t.Errorf("it panicked with %v", f)
					}
				}()
				s.to(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, panicsInTheClient)
			}()
			if got := log.String(); !strings.Contains(got, "a fault of the test's") || !strings.Contains(got, "panicsInTheClient") {
				t.Errorf("logged: %s", got)
			}
		})
	}
}

// keeper is a writer of which a write has failed, though what was to be written may still be sent, as over HTTP/2.
type keeper struct {
	http.ResponseWriter

	kept [][]byte
}

func (k *keeper) Write(p []byte) (int, error) {
	k.kept = append(k.kept, p)
	return 0, errors.New("stream closed")
}

// TestWrite_AFailedOneKeepsItsBytes: no other request's answer is written over them.
func TestWrite_AFailedOneKeepsItsBytes(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, stream := range []string{"true", "false"} {
		k := &keeper{ResponseWriter: httptest.NewRecorder()}
		body := `{"model":"tinychat","stream":` + stream + `,` + dialectAsks["chat"].body + `}`
		s.Config.Handler.ServeHTTP(k, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions", strings.NewReader(body)))
		if len(k.kept) == 0 {
			t.Fatal("nothing was written")
		}
		kept, sent := k.kept[0], string(k.kept[0])
		for range 20 {
			s.chat(`,"stream":` + stream + `,"max_tokens":3`)
		}
		if string(kept) != sent {
			t.Errorf("stream %s: %q has become %q", stream, sent, kept)
		}
	}
}
