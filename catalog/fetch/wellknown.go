package fetch

import (
	_ "embed" // for the catalog
	"encoding/json"
	"slices"
	"strings"
	"sync"
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
