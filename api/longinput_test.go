package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestInputs_TooLong: an input that an encoder can't take as a whole is refused with the most that it takes, never with the engine's advice.
func TestInputs_TooLong(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	link(t, "../testdata/models/lmcaddy/tinyembed/tinyembed-f16.gguf", filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyembed", "tinyembed-f16.gguf"))
	long := `"` + strings.TrimSpace(strings.Repeat("a ", 600)) + `"`
	for path, tt := range map[string]struct{ body, want string }{
		"/v1/embeddings":     {`{"model":"tinyembed","input":["b",` + long + `]}`, "The input has 600 tokens, but lmcaddy/tinyembed takes 512 at most. Split"},
		"/api/v0/embeddings": {`{"model":"tinyembed","input":` + long + `}`, "The input has 600 tokens, but lmcaddy/tinyembed takes 512 at most. Split"},
		"/api/embed": {
			`{"model":"tinyembed","input":` + long + `,"truncate":false}`,
			"the input length exceeds the context length: The input has 600 tokens, but lmcaddy/tinyembed takes 512 at most.",
		},
	} {
		got := s.do("POST", path, tt.body)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, tt.want) || strings.Contains(got.body, "batch") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
