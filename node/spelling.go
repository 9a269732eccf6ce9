package node

import (
	"iter"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// spellings are the names that a client may mean by a name: the name itself, and then what it stands for if it has the form of Ollama's names.
// Clients list the models in one dialect and ask for them in another.
func spellings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(name) || strings.HasSuffix(name, ":") {
			return
		}
		others := append([]string{ollama.Canonical(name)}, ollama.Synonyms(name)...)
		if id, ok := LibraryModel(name); ok {
			others = append(others, id)
		}
		for i, other := range others {
			if other != name && !slices.Contains(others[:i], other) && !yield(other) {
				return
			}
		}
	}
}

// LibraryModel returns the identifier in the built-in list of models that a name of Ollama's own library stands for.
func LibraryModel(name string) (id string, ok bool) {
	parsed := ollama.ParseName(name)
	wanted := parsed.Squashed()
	if wanted == "" {
		return "", false
	}
	all := fetch.WellKnown()
	i := slices.IndexFunc(all, func(e fetch.Entry) bool {
		_, bare, _ := strings.Cut(e.ID, "/")
		return ollama.Squash(bare) == wanted
	})
	if i < 0 {
		return "", false
	}
	if _, quantization := parsed.Split(); quantization != "" {
		return all[i].ID + "@" + quantization, true
	}
	return all[i].ID, true
}
