package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The shipped models other than the chat model.
const (
	embedModel  = "lmcaddy/tinyembed"
	rerankModel = "lmcaddy/tinyrerank"
)

// withOthers adds them to a home.
func withOthers(h *harness.Home) *harness.Home {
	h.T.Helper()
	for _, key := range []string{embedModel, rerankModel} {
		h.AddModel(key, filepath.Base(key)+"-f16.gguf", shippedFile(h.T, key))
	}
	return h
}

func shippedFile(t testing.TB, key string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "testdata", "models", filepath.FromSlash(key), filepath.Base(key)+"-f16.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
