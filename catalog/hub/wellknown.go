package hub

import (
	_ "embed" // for wellknown.json
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Entry is an entry of the built-in list of models.
type Entry struct {
	ID   string `json:"id"`   // publisher/name, lower case: what clients request, and the model's key
	Repo string `json:"repo"` // publisher/repository on the hub
	Type string `json:"type"` // "llm" or "embedding"
	// MLX is another repository, with the same model in the MLX format. It is empty if there is none, or if the engine for that
	// format can't do with the model what llama-server can, such as see images or find its calls.
	MLX string `json:"mlx,omitempty"`
}

//go:embed wellknown.json
var wellKnownJSON []byte

// WellKnown returns the built-in list of popular open models. It must not be modified.
var WellKnown = sync.OnceValue(func() []Entry {
	var all []Entry
	if err := json.Unmarshal(wellKnownJSON, &all); err != nil {
		panic("wellknown.json: " + err.Error()) // a test reads it
	}
	return all
})

// NamesOf returns the names by which a repository can be requested without a URL: its own, and those in the list.
func NamesOf(repo string) []string {
	names := []string{repo}
	for _, e := range WellKnown() {
		if strings.EqualFold(e.Repo, repo) || strings.EqualFold(e.MLX, repo) {
			names = append(names, e.ID)
		}
	}
	return names
}

// SameModel returns other names, as publisher/name, for the model that a name means, from the built-in list. The name may lack
// the ending of its repository, like a model's key.
func SameModel(name string) []string {
	if entry, ok := wellKnown(name); ok {
		if entry.MLX != "" {
			return []string{entry.ID, entry.Repo, entry.MLX}
		}
		return []string{entry.ID, entry.Repo}
	}
	var names []string
	for _, e := range WellKnown() {
		if strings.EqualFold(filename.TrimEnding(e.Repo, "-gguf"), filename.TrimEnding(name, "-gguf")) || strings.EqualFold(e.MLX, name) {
			names = append(names, e.ID)
		}
	}
	return names
}

// wellKnown finds an entry by its ID, with or without the publisher, in any case.
func wellKnown(name string) (Entry, bool) {
	name = strings.ToLower(name)
	all := WellKnown()
	i := slices.IndexFunc(all, func(e Entry) bool {
		_, bare, _ := strings.Cut(e.ID, "/")
		return e.ID == name || bare == name
	})
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}
