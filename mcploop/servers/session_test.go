package servers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestSession_OverAllTransports(t *testing.T) {
	t.Parallel()
	urls := overHTTP(t)
	p := newPool(t, map[string]any{"program": program("library")})
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exercise(t, remote(t, p, url))
		})
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		exercise(t, plugin(t, p, "program"))
	})
}

// exercise uses a server of newServer.
func exercise(t *testing.T, s *Session) {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err, causeOf(err))
	}
	if diff := cmp.Diff([]string{"echo", "fail", "grow"}, names(tools)); diff != "" {
		t.Fatal(diff)
	}
	if want := `{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}`; string(tools[0].Schema) != want {
		t.Errorf("the schema of echo is %s, want %s", tools[0].Schema, want)
	}
	for _, call := range []struct {
		tool, args, want string
		isError          bool
	}{
		{"echo", `{"text":"hello"}`, `[{"type":"text","text":"hello"}]`, false},
		{"fail", `{}`, `[{"type":"text","text":"no such luck"}]`, true},
		{"nothing", ``, `[{"type":"text","text":"MCP error -32602: tool 'nothing' not found: tool not found"}]`, true},
		{"grow", ``, `[{"type":"text","text":"grew"}]`, false},
	} {
		got, err := s.Call(t.Context(), call.tool, []byte(call.args))
		if err != nil {
			t.Fatal(err, causeOf(err))
		}
		if string(got.Content) != call.want || got.IsError != call.isError {
			t.Errorf("%s returned %s (error: %v), want %s (error: %v)", call.tool, got.Content, got.IsError, call.want, call.isError)
		}
	}
	testkit.Eventually(t, "the new list of tools", func() bool {
		tools, err := s.Tools(t.Context())
		return err == nil && slices.Equal(names(tools), []string{"echo", "fail", "grow", "grown"})
	})
}
