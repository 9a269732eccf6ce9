package api

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeremote"
)

// ways are requests with a text, or with messages that have it.
var ways = []struct{ path, body string }{
	{"/v1/chat/completions", `{"model":"org/far","messages":[%s]}`},
	{"/v1/chat/completions", `{"model":"org/far","stream":true,"messages":[%s]}`},
	{"/v1/messages", `{"model":"org/far","max_tokens":50,"messages":[%s]}`},
	{"/v1/responses", `{"model":"org/far","input":[%s]}`},
	{"/v1/responses", `{"model":"org/far","background":true,"input":[%s]}`},
	{"/api/chat", `{"model":"org/far","messages":[%s]}`},
	{"/v1/completions", `{"model":"org/far","prompt":%q}`},
	{"/api/generate", `{"model":"org/far","stream":false,"prompt":%q}`},
	{"/api/v1/chat", `{"model":"org/far","input":%q}`},
	{"/v1/embeddings", `{"model":"bge-embed","input":%q}`},
	{"/v1/chat/completions", `{"model":"org/far","temperature":"hot","messages":[%s]}`}, // refused
	{"/v1/chat/completions", `{"model":"org/far","messages":[%s],}`},                    // isn't JSON
}

// marked returns a request whose text repeats a mark.
func marked(way int, mark string, times int) (path, body string) {
	w := ways[way%len(ways)]
	text := strings.Repeat(mark+"\n\té ", times)
	if strings.Contains(w.body, "%q") {
		return w.path, fmt.Sprintf(w.body, text)
	}
	parts := fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
	switch w.path {
	case "/v1/responses":
		parts = strings.Replace(parts, `"text"`, `"input_text"`, 1)
	case "/api/chat":
		parts = fmt.Sprintf("%q", text)
	}
	messages := fmt.Sprintf(`{"role":"user","content":%q},{"role":"assistant","content":%q},{"role":"user","content":%s}`, mark, text, parts)
	return w.path, fmt.Sprintf(w.body, messages)
}

// TestBody_NothingOfOthers: bodies are read into memory that is used again, and parts of them are sent from there. What an engine gets for one
// request has nothing of another, whatever becomes of the others: they are refused, or their clients disconnect.
func TestBody_NothingOfOthers(t *testing.T) {
	t.Parallel()
	far := fakeremote.Start(t, "vllm", false, "Org/Far", "bge-embed")
	s := serve(t, &fakeengine.Script{}, withRemotes(far))
	s.await("org/far")
	const clients, each = 8, 30
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := range each {
				path, body := marked(client+i, fmt.Sprintf("<%d-%d>", client, i), 1+(client*i*97)%7000)
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 4 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
				}
				rq, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
				if err != nil {
					panic(err) // it is well-formed
				}
				if resp, err := s.Client().Do(rq); err == nil {
					_ = resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	marks := regexp.MustCompile(`<\d+-\d+>|\\u003c\d+-\d+\\u003e`)
	asked := far.Asked()
	for _, rq := range asked {
		mark := marks.FindString(rq.Body)
		if mark == "" {
			t.Errorf("%s: a body without its text: %.200s", rq.Path, rq.Body)
			continue
		}
		if other := marks.FindString(strings.ReplaceAll(rq.Body, mark, "")); other != "" {
			t.Fatalf("%s: a body of %d bytes with %s has %s, too", rq.Path, len(rq.Body), mark, other)
		}
	}
	if len(asked) < clients*each/2 {
		t.Errorf("%d requests of %d have reached the remote", len(asked), clients*each)
	}
}
