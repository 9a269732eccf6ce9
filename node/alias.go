package node

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// aliases are the aliases of some settings, in the form in which names are compared.
type aliases struct {
	exact    map[string]string // the models' keys, or other names of theirs
	patterns []aliasPattern    // the closest first
}

type aliasPattern struct{ alias, key string }

// latest ends names of Ollama's clients, and means nothing.
const latest = ":latest"

func newAliases(models map[string]ModelSettings) *aliases {
	a := &aliases{exact: map[string]string{}}
	for key, m := range models {
		for _, alias := range m.Aliases {
			alias = catalog.Normal(alias)
			if isPattern(alias) {
				a.patterns = append(a.patterns, aliasPattern{alias, key})
			} else {
				a.exact[alias] = key
			}
		}
	}
	for alias, key := range a.exact {
		if short, ok := strings.CutSuffix(alias, latest); ok && a.exact[short] == "" {
			a.exact[short] = key
		}
	}
	slices.SortFunc(a.patterns, func(a, b aliasPattern) int {
		return cmp.Or(cmp.Compare(len(b.alias), len(a.alias)), cmp.Compare(a.alias, b.alias))
	})
	return a
}

// isPattern reports whether an alias is a pattern.
func isPattern(alias string) bool { return strings.ContainsAny(alias, "*?[") }

// named returns the aliases.
func (s *Settings) named() *aliases {
	if s.aliases != nil {
		return s.aliases
	}
	return newAliases(s.Models)
}

// alias returns the key for an alias that isn't a pattern.
func (s *Settings) alias(name string) (key string, ok bool) {
	key, ok = s.named().exact[catalog.Normal(name)]
	return key, ok
}

// pattern returns the key for the closest alias that is a pattern and fits a name: the longest.
func (s *Settings) pattern(name string) (key string, ok bool) {
	name = catalog.Normal(name)
	for _, p := range s.named().patterns {
		if fits, _ := path.Match(p.alias, name); fits {
			return p.key, true
		}
	}
	return "", false
}

// isAlias reports whether an alias is, or fits, a name.
func (s *Settings) isAlias(name string) bool { return s.resolve(name) != name }

// resolve returns the key for an alias or for a name that fits one, or else the name itself.
func (s *Settings) resolve(name string) string {
	if key, ok := s.alias(name); ok {
		return key
	}
	if key, ok := s.pattern(name); ok {
		return key
	}
	return name
}
