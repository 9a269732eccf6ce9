package api

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
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
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	fakemlx.MainIfChild()
	status := m.Run()
	if ids := unseen(); status == 0 && len(ids) > 0 && isWhole() {
		fmt.Println("openapi.json: no test has these operations succeed:", ids)
		status = 1
	}
	os.Exit(status)
}

// isWhole reports whether all tests of the package have run.
func isWhole() bool {
	for _, name := range []string{"run", "skip", "list"} {
		if flag.Lookup("test."+name).Value.String() != "" {
			return false
		}
	}
	return true
}

// shipped is the model that tests name; the fake engine doesn't look into it, the catalog does.
const shipped = "../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf"

// server is the API over a node whose engine is the fake one.
type server struct {
	*httptest.Server
	t    *testing.T
	fake *fakeengine.Engine
	node *node.Node
}

type option func(*endpoint.Config, *node.Settings)

func serve(t *testing.T, script *fakeengine.Script, options ...option) *server {
	t.Helper()
	dir := home.Dir(t.TempDir())
	link(t, shipped, filepath.Join(dir.Models(), "lmcaddy", "tinychat", "tinychat-f16.gguf"))
	lock, err := node.Reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler))
	s := &server{t: t, fake: fakeengine.Install(t, script), node: n}
	settings := node.Settings{JIT: true, Engines: map[string]node.EngineSettings{"llama_server": {Path: s.fake.Path, Sandbox: schedule.Off}}}
	config := endpoint.Config{Node: func(context.Context) (*node.Node, error) { return n, nil }, Log: slog.New(slog.DiscardHandler)}
	for _, o := range options {
		o(&config, &settings)
	}
	if err := n.Push(1, settings); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(checked(t, New(config)))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func link(t testing.TB, from, to string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.Symlink(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// code is the error's code, in any dialect that has one.
func (a answer) code() string {
	var e struct {
		Error struct {
			Code string `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(a.body), &e) != nil {
		return "not JSON"
	}
	if e.Error.Code == "" {
		return e.Error.Type
	}
	return e.Error.Code
}

func (s *server) do(method, path, body string, header ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(got)}
}

func (s *server) chat(more string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/chat/completions", `{"model":"lmcaddy/tinychat","messages":[{"role":"user","content":"hi"}]`+more+`}`)
}

// inParallel has each instance answer n requests at a time.
func inParallel(s *node.Settings, n int) {
	e := s.Engines["llama_server"]
	e.Parallel = n
	s.Engines["llama_server"] = e
}
