package remote

import (
	"path"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// Found is what a remote says of itself.
type Found struct {
	Kind    string
	Version string // empty: unknown
	Models  []Model
}

// Model is a model of a remote.
type Model struct {
	catalog.Model

	ID        string   // what the server calls it
	Loaded    bool     // as far as the server tells
	Context   int      // tokens that a request gets; 0: unknown
	Slots     int      // requests that the server works on at a time; 0: unknown
	Instances []string // its ids of the loaded instances, if it tells
}

// KeyOf returns the key of a model by what a server calls it.
func KeyOf(id string) string {
	id = strings.ToLower(strings.Trim(strings.ReplaceAll(id, "\\", "/"), "/"))
	if strings.HasSuffix(id, ".gguf") { // llama-server calls a model by its file
		id = strings.TrimSuffix(path.Base(id), ".gguf")
	}
	if parts := strings.Split(id, "/"); len(parts) > 2 { // a path
		id = strings.Join(parts[len(parts)-2:], "/")
	}
	return strings.TrimSuffix(id, "-gguf")
}

// describe sets what the name of a model and the configuration tell of it.
func (c *Config) describe(m *Model) {
	m.Key = KeyOf(m.ID)
	publisher, bare, ok := strings.Cut(m.Key, "/")
	if !ok {
		publisher, bare = c.Name, m.Key
	}
	if m.Publisher == "" {
		m.Publisher = publisher
	}
	if m.DisplayName == "" {
		m.DisplayName = bare
	}
	if m.Type == "" {
		m.Type = catalog.TypeLLM
		if strings.Contains(m.Key, "embed") {
			m.Type = catalog.TypeEmbedding
		}
	}
	if fits(c.Rerankers, m.Key) {
		m.Type, m.Reranker = catalog.TypeEmbedding, true
	} else if fits(c.Embeddings, m.Key) {
		m.Type = catalog.TypeEmbedding
	}
	if fits(c.Vision, m.Key) {
		m.Vision = true
	}
	if m.Context == 0 {
		m.Context = c.ContextLength
	}
	if m.MaxContextLength == 0 {
		m.MaxContextLength = m.Context
	}
	m.IsRemote = true
}

// takes reports whether a model is used.
func (c *Config) takes(m *Model) bool {
	return m.Key != "" && len(m.Key) <= 256 && (len(c.Models) == 0 || fits(c.Models, m.Key))
}
