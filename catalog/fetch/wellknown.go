package fetch

import (
	_ "embed" // for the catalog
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Entry is a model of the catalog that is shipped.
type Entry struct {
	ID   string `json:"id"`   // publisher/name, lower case: what clients ask for, and the model's key once it is there
	Repo string `json:"repo"` // publisher/repository on the hub
	Type string `json:"type"` // "llm" or "embedding"
}

//go:embed wellknown.json
var wellKnownJSON []byte

// WellKnown is the catalog that is shipped: open models that everybody asks for. It is not to be changed.
var WellKnown = sync.OnceValue(func() []Entry {
	var all []Entry
	if err := json.Unmarshal(wellKnownJSON, &all); err != nil {
		panic("wellknown.json: " + err.Error()) // a test reads it, too
	}
	return all
})

// namesOf are the names that a repository can be asked for by without a URL: its own, and the catalog's.
func namesOf(repo string) []string {
	names := []string{repo}
	for _, e := range WellKnown() {
		if strings.EqualFold(e.Repo, repo) {
			names = append(names, e.ID)
		}
	}
	return names
}

// SameModel gives the other names, as publisher/name, by which what a name means can be asked for: those of an entry of the
// catalog. The name may lack its repository's ending, as a model's key does.
func SameModel(name string) []string {
	if entry, ok := wellKnown(name); ok {
		return []string{entry.ID, entry.Repo}
	}
	var names []string
	for _, e := range WellKnown() {
		if strings.EqualFold(filename.TrimEnding(e.Repo, "-gguf"), filename.TrimEnding(name, "-gguf")) {
			names = append(names, e.ID)
		}
	}
	return names
}

// wellKnown finds an entry by its identifier, or by that without the publisher; in any case of letters.
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
