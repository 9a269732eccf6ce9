package echoengine_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/echoengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

func TestMain(m *testing.M) {
	echoengine.MainIfChild()
	os.Exit(m.Run())
}

// server is the API over a node that has the engine.
type server struct {
	*httptest.Server
	t    *testing.T
	node *node.Node
}

// serve serves two models: canyon, which chats, and ruler, which makes vectors.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	dir := home.Dir(t.TempDir())
	for name, text := range map[string]string{
		"echo/canyon/canyon.echo": "echo\ncontext: 40\n",
		"echo/ruler/ruler.echo":   "echo\ntype: embedding\n",
	} {
		file := filepath.Join(dir.Models(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := node.Reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler), node.Engine{Engine: echoengine.Engine(), Wire: echoengine.Wire{}}) // the one line
	path, err := echoengine.Path()
	if err != nil {
		t.Fatal(err)
	}
	settings := node.Settings{JIT: true, Engines: map[string]node.EngineSettings{"echo": {Path: path, Args: args}}}
	if err := n.Push(1, settings); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, node: n}
	s.Server = httptest.NewServer(api.New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return n, nil }, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// do returns the status and the body of an answer.
func (s *server) do(method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// chat sends a request for a chat to an endpoint in the style of OpenAI. more are further fields.
func (s *server) chat(path, prompt, more string) (int, string) {
	s.t.Helper()
	return s.do("POST", path, `{"model":"canyon","messages":[{"role":"user","content":`+quoted(prompt)+`}]`+more+`}`)
}

// messages sends a request of the Messages API.
func (s *server) messages(prompt, more string) (int, string) {
	s.t.Helper()
	return s.chat("/v1/messages", prompt, `,"max_tokens":30`+more)
}

// native sends a request of the native chat.
func (s *server) native(prompt, more string) (int, string) {
	s.t.Helper()
	return s.do("POST", "/api/v1/chat", `{"model":"canyon","input":`+quoted(prompt)+more+`}`)
}

func quoted(s string) string { return string(jsonbody.AppendString(nil, s)) }

// frames are the data of a stream's events.
func frames(stream string) []gjson.Result {
	var all []gjson.Result
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
			all = append(all, gjson.Parse(data))
		}
	}
	return all
}
