package remote

import (
	"cmp"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

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
	Pinned    bool     // one of these is never evicted; only other nodes of the cluster tell
	Via       []string // the ids of the servers like this one that every request to it passes, as [supervisor.Via]
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
	for _, text := range []*string{&m.Publisher, &m.DisplayName, &m.Architecture, &m.Quantization.Name, &m.SizeLabel} {
		*text = printable(*text)
	}
	if m.Changed.IsZero() {
		m.Changed = time.Unix(0, 0) // what lists say of a time that isn't known
	}
	m.Publisher, m.DisplayName = cmp.Or(m.Publisher, publisher), cmp.Or(m.DisplayName, bare)
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
	m.Vision = m.Vision || fits(c.Vision, m.Key)
	m.Context = cmp.Or(m.Context, c.ContextLength)
	m.MaxContextLength = cmp.Or(m.MaxContextLength, m.Context)
	m.IsRemote = true
}

// takes reports whether a model is used. Its key must be a path without dots as its parts, which people can read.
func (c *Config) takes(m *Model) bool {
	for part := range strings.SplitSeq(m.Key, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return len(m.Key) <= 256 && printable(m.Key) == m.Key && (len(c.Models) == 0 || fits(c.Models, m.Key))
}

// printable returns a text without what a terminal may obey, and not too long.
func printable(text string) string {
	const most = 256
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// number is a whole number that a server tells. Some write it as 4096.0 or 1e9. Anything else is 0.
type number int64

// UnmarshalJSON reads any value.
func (n *number) UnmarshalJSON(text []byte) error {
	const most = 1 << 50
	if v, err := strconv.ParseFloat(string(text), 64); err == nil && v > 0 && v <= most {
		*n = number(v)
	}
	return nil
}

const maxContext = 1 << 30

func (n number) tokens() int {
	return int(min(n, maxContext))
}
