package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// anyPrompt has engines take prompts of any length, several at a time.
func anyPrompt(_ *endpoint.Config, s *node.Settings) {
	e := s.Engines["llama_server"]
	e.Parallel, e.Args = 4, []string{"-c", "1000000"} // so that no prompt is known to be too long
	s.Engines["llama_server"] = e
}

// largeBody returns a chat of size bytes, filled with its name.
func largeBody(name string, size int, more string) string {
	return `{"model":"tinychat","messages":[{"role":"user","content":"` + strings.Repeat(name, size/len(name)) + `"}]` + more + `}`
}

// TestLargeBodies_AreSentAgainWhole: engines die while bodies are sent to them or answered, and some clients disconnect. Each
// body that arrives is one client's alone, and whole; each client that waits is answered.
func TestLargeBodies_AreSentAgainWhole(t *testing.T) {
	t.Parallel()
	amid := func(after int) fakeengine.Script {
		return fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 3, PromptTokens: 1, Cues: []fakeengine.Cue{{After: after, Do: fakeengine.Crash}}}, {PromptTokens: 1}}}
	}
	for name, dying := range map[string]fakeengine.Script{
		"while it is sent":          {DieReading: 70 << 10},
		"before it is answered":     amid(0),
		"while it is answered":      amid(2),
		"while the largest is sent": {DieReading: 250 << 10, Rules: []fakeengine.Rule{{PromptTokens: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 1}}}, anyPrompt)
			sizes := []int{66 << 10, 80 << 10, 120 << 10, 300 << 10}
			for wave := range 2 {
				engine := len(s.starts()) + 1
				if wave > 0 {
					engine-- // the one that is there
				}
				s.fake.Set(func(script *fakeengine.Script) {
					script.Cases = []fakeengine.Case{{Start: engine, Script: dying}}
				})
				var all sync.WaitGroup
				for i := range 8 {
					id := fmt.Sprintf("<%c%d>", 'a'+i, wave)
					body := largeBody(id, sizes[i/2], []string{"", `,"max_tokens":50`}[i%2])
					all.Go(func() {
						if i%4 == 3 {
							s.leaves(body)
						} else if got := s.do("POST", "/v1/chat/completions", body); got.status != 200 {
							t.Errorf("%s, wave %d: %d %.300s", id, wave, got.status, got.body)
						}
					})
				}
				all.Wait()
			}
			s.bodiesAreWhole()
			if n := len(s.starts()); n < 2 {
				t.Errorf("%d engines were started: none has died", n)
			}
		})
	}
}

// leaves sends a request, and disconnects when all of it is sent, which is while it is on its way to the engine.
func (s *server) leaves(body string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", &leaving{strings.NewReader(body), cancel})
	if err != nil {
		s.t.Error(err)
		return
	}
	req.ContentLength = int64(len(body))
	if resp, err := s.Client().Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// leaving is a body whose client disconnects at its end.
type leaving struct {
	text  *strings.Reader
	leave func()
}

func (l *leaving) Read(p []byte) (int, error) {
	n, err := l.text.Read(p)
	if l.text.Len() == 0 {
		defer l.leave()
	}
	return n, err
}

// bodiesAreWhole sees that every body that an engine read to its end is JSON, of one client alone.
func (s *server) bodiesAreWhole() {
	s.t.Helper()
	for _, ev := range s.fake.Events() {
		if ev.Kind != fakeengine.Request || ev.N == 0 {
			continue
		}
		text := []byte(gjson.Get(ev.Body, "messages.0.content").Str)
		if !gjson.Valid(ev.Body) || len(text) < 64<<10 {
			s.t.Errorf("a body of %d bytes isn't whole: %.100s", len(ev.Body), ev.Body)
			continue
		}
		end := bytes.IndexByte(text, '>') + 1
		if rest := bytes.ReplaceAll(text, text[:end], nil); len(rest) > 0 {
			s.t.Errorf("the body of %s has something else in it: %.100s", text[:end], rest)
		}
	}
}
