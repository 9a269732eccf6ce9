package api

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

// TestFind_AModelWhoseFileIsRemovedWhileItIsLoaded answers as long as it is loaded, by every name.
func TestFind_AModelWhoseFileIsRemovedWhileItIsLoaded(t *testing.T) {
	t.Parallel()
	names := []string{"lmcaddy/tinychat", "tinychat", "tinychat:latest", "my-alias", "gpt-x", "lmcaddy/tinychat-gguf"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, func(_ *endpoint.Config, s *node.Settings) {
				s.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"my-alias", "gpt-*"}}}
			})
			ask := func() answer {
				t.Helper()
				return s.do("POST", "/v1/chat/completions", `{"model":"`+name+`","messages":[{"role":"user","content":"hi"}]}`)
			}
			if got := ask(); got.status != 200 {
				t.Fatalf("before: %d %s", got.status, got.body)
			}
			if err := os.RemoveAll(filepath.Join(s.node.Home().Models(), "lmcaddy")); err != nil {
				t.Fatal(err)
			}
			for begun := time.Now(); time.Since(begun) < 500*time.Millisecond; {
				if got := ask(); got.status != 200 {
					t.Errorf("%v after: %d %.150s", time.Since(begun), got.status, got.body)
				}
			}
		})
	}
}
