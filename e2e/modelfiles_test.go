package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestModels_NewerThanTheEngine: an architecture that the engine doesn't know is told in the list, before a load, and by the failure of a load,
// with the engine's version and what to do.
func TestModels_NewerThanTheEngine(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	home.AddModel("new/kind", "kind.gguf", bytes.ReplaceAll(harness.ShippedModel(t), []byte("llama"), []byte("llamx")))
	s := harness.Start(home, harness.Config{})
	const advice = `"lmcaddy runtime get llama.cpp"`
	for _, m := range s.Get("/api/v1/models").Want(t, http.StatusOK).Get("models").Array() {
		problem, isNew := m.Get("engine_problem").Str, m.Get("key").Str == "new/kind"
		if isNew != strings.Contains(problem, `unknown architecture "llamx". llama.cpp b`) || isNew != strings.Contains(problem, advice) {
			t.Errorf("%s: %q", m.Get("key"), problem)
		}
	}
	for _, path := range []string{harness.ChatPath, "/v1/messages", "/v1/responses"} {
		request := harness.Ask(capital).With("model", "new/kind").With("max_tokens", 9)
		if path == "/v1/responses" {
			request = harness.Fields{"model": "new/kind", "input": capital}
		}
		said := s.Post(path, request).Get("error.message").Str
		if !strings.Contains(said, "unknown model architecture: 'llamx'") || !strings.Contains(said, advice) {
			t.Errorf("%s: %s", path, said)
		}
	}
}

// TestModels_DrafterBesideTheModel: the engine drafts with a file that no list of models has.
func TestModels_DrafterBesideTheModel(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	draft, err := os.ReadFile(filepath.Join("..", "testdata", "models", "lmcaddy", "tinydraft", "tinydraft-f16.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	home.AddModel("pub/pair", "pair-f16.gguf", harness.ShippedModel(t))
	home.AddModel("pub/pair", "pair-draft-f16.gguf", draft)
	s := harness.Start(home, harness.Config{LM: []string{"list_models all"}})
	for _, path := range []string{"/api/v1/models", "/v1/models"} {
		if body := s.Get(path).Want(t, http.StatusOK).Body; strings.Contains(body, "draft-f16") || !strings.Contains(body, `"pub/pair"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	answer := s.Post("/api/v0/chat/completions", harness.Ask(capital).With("model", "pub/pair").With("draft_model", "pair-draft-f16.gguf").With("temperature", 0)).Want(t, http.StatusOK)
	if answer.Get("choices.0.message.content").Str != paris || answer.Get("stats.accepted_draft_tokens_count").Int() == 0 {
		t.Errorf("%s", answer.Body)
	}
}

// TestEmbeddings_OfAModelWithoutPooling: its name says what it is, and the engine is told how to pool.
func TestEmbeddings_OfAModelWithoutPooling(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	home.AddModel("pub/Some-Embedding-GGUF", "some-f16.gguf", harness.ShippedModel(t))
	s := harness.Start(home, harness.Config{})
	got := s.Post("/v1/embeddings", harness.Fields{"model": "pub/some-embedding", "input": "hello"}).Want(t, http.StatusOK)
	if got.Get("data.0.embedding.#").Int() == 0 {
		t.Errorf("%s", got.Body)
	}
}
