package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
)

// The model of the tests with an mlx_lm.server, its folder, and its context length in tokens.
const (
	mlxModel   = "lmcaddy/tinychat"
	mlxFolder  = "lmcaddy/tinychat-mlx"
	mlxContext = 8192
)

// mlxServer is the API over a node whose engine is a fake mlx_lm.server.
type mlxServer struct {
	*server
	fake *fakemlx.Engine
}

func serveMLX(t *testing.T, rules ...fakekit.Rule) *mlxServer {
	t.Helper()
	dir := home.Dir(t.TempDir())
	link(t, "../testdata/mlx/"+mlxFolder, filepath.Join(dir.Models(), filepath.FromSlash(mlxFolder)))
	lock, err := node.Reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler))
	s := &mlxServer{&server{t: t, node: n}, fakemlx.Install(t, &fakemlx.Script{Rules: rules})}
	err = n.Push(1, node.Settings{
		JIT: true, Engines: map[string]node.EngineSettings{"mlx_lm": {Command: []string{s.fake.Path}}},
		Models: map[string]node.ModelSettings{mlxModel: {ContextLength: mlxContext}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(checked(t, New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return n, nil }, Log: slog.New(slog.DiscardHandler)})))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request of a dialect with the given text of the user, and returns the answer and the bodies that the engine was sent.
func (s *mlxServer) ask(path, text, more string) (answer, []string) {
	s.t.Helper()
	s.load()
	before := len(s.sent())
	got := s.do("POST", path, mlxBody(path, text, more))
	return got, s.sent()[before:]
}

// load loads the model, so that its trial isn't among what a request sends.
func (s *mlxServer) load() {
	s.t.Helper()
	if len(s.node.Instances()) > 0 {
		return
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"`+mlxModel+`"}`); got.status != 200 {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
}

// sent are the bodies of all requests that generate, in order.
func (s *mlxServer) sent() []string {
	var all []string
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakekit.Request && ev.Method == http.MethodPost {
			all = append(all, ev.Body)
		}
	}
	return all
}

// mlxBody is the body of a request. text needs no escapes.
func mlxBody(path, text, more string) string {
	fields := `"messages":[{"role":"user","content":"` + text + `"}]`
	switch {
	case path == "/v1/responses", path == "/v1/responses/input_tokens", path == "/api/v1/chat":
		fields = `"input":"` + text + `"`
	case strings.HasSuffix(path, "/completions") && !strings.HasSuffix(path, "/chat/completions"):
		fields = `"prompt":"` + text + `"`
	case path == "/v1/messages" && !strings.Contains(more, "max_tokens"):
		fields += `,"max_tokens":20000`
	}
	return `{"model":"` + mlxModel + `",` + fields + more + `}`
}

// limits are the limits of tokens of requests that an engine was sent.
func limits(bodies []string) []int {
	var all []int
	for _, body := range bodies {
		limit := int(gjson.Get(body, "max_tokens").Int())
		if gjson.Get(body, "prompt").Exists() { // a text completion is given a token too many, which is left out of the answer
			limit--
		}
		all = append(all, limit)
	}
	return all
}

// waitIdle waits until no slot of the model is leased.
func (s *mlxServer) waitIdle() {
	s.t.Helper()
	testkit.Eventually(s.t, "no request is there any more", func() bool { return s.node.Instances()[0].InUse == 0 })
}
