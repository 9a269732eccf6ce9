package text

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

func TestTokens_CachedOnesOfAPromptCountOnce(t *testing.T) {
	t.Parallel()
	r := &Run{spent: []partUsage{
		{0, 0, translate.Usage{Prompt: 10, Cached: 2, Completion: 1}},
		{1, 0, translate.Usage{Prompt: 10, Cached: 9, Completion: 2}}, // which finds what the first has processed
		{2, 1, translate.Usage{Prompt: 20, Cached: 15, Completion: 3}},
	}}
	if got := r.usage(); got != (translate.Usage{Prompt: 30, Cached: 17, Completion: 6}) {
		t.Errorf("%+v", got)
	}
}

// textReply streams the text of an answer, each piece on a line.
type textReply struct {
	*Run
}

func (r textReply) Begin(_ context.Context, resp *Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	return r.ByEvents(resp, decoder, r), nil
}

func (textReply) IsSeen(sent bool) bool { return sent }

func (textReply) Append(dst []byte, ev translate.Event) []byte {
	if text, ok := ev.(translate.Text); ok {
		dst = append(append(dst, text.Text...), '\n')
	}
	return dst
}

// plainDialect is a dialect with server-sent events.
var plainDialect = &endpoint.Dialect{Errors: openai.Errors{}, Stream: endpoint.ServerSent}

// openEngineNode returns a node with the shipped model and a fake engine.
func openEngineNode(t *testing.T, script *fakeengine.Script) *node.Node {
	t.Helper()
	dir := home.Dir(t.TempDir())
	from, err := filepath.Abs("../../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir.Models(), "lmcaddy", "tinychat", "tinychat-f16.gguf")
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Symlink(from, to)); err != nil {
		t.Fatal(err)
	}
	lock, err := node.Reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	fake := fakeengine.Install(t, script)
	settings := node.Settings{JIT: true, Engines: map[string]node.EngineSettings{"llama_server": {Path: fake.Path, Sandbox: schedule.Off}}}
	if err := n.Push(1, settings); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRun_Rounds: an answer may take several upstream requests one after the other. Each may be sent again, whatever the client
// has seen of those before it, and each has a prompt that counts.
func TestRun_Rounds(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]*fakeengine.Script{
		"healthy": {Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}},
		"an engine that ends before its second answer": {
			Cases: []fakeengine.Case{{Start: 1, Script: fakeengine.Script{Rules: []fakeengine.Rule{
				{Nth: 2, Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}},
				{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}},
			}}}},
			Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`
			w := httptest.NewRecorder()
			asked := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
			c := endpoint.NewCall(endpoint.NewSite(endpoint.Config{Log: slog.New(slog.DiscardHandler)}), plainDialect, w, asked)
			c.Node = openEngineNode(t, script)
			defer c.Client.Close()
			rq, err := Read(c, openai.WithDefaults, nil)
			if err != nil {
				t.Fatal(err)
			}
			chat, bad := openai.ParseChat(rq.Body, rq.Caps)
			if bad != nil {
				t.Fatal(bad)
			}
			r := NewRun(rq)
			defer r.Close()
			for round := range 2 {
				if err := r.Generate(t.Context(), Part{Index: round, Prompt: round, Reply: textReply{r}, Task: &ChatTask{Body: rq.Body, Chat: chat}}); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(strings.Fields(w.Body.String()), " "); got != "one two one two" {
				t.Errorf("%q", got)
			}
			if got := r.usage(); got.Prompt != 14 || got.Completion != 4 { // whether the second is cached depends on the engine
				t.Errorf("%+v", got)
			}
		})
	}
}
