package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// CustomModel is a name that a client has given a model, with defaults for requests that use the name. It outlives a restart.
type CustomModel struct {
	Name     string `json:"name"`               // in lower case
	Model    string `json:"model"`              // the model's key, with its variant
	Defaults Preset `json:"defaults,omitempty"` // of requests; empty: it is only another name
}

// customModels are stored in a file of the home. Few are expected: it is written as a whole.
type customModels struct {
	file string
	mu   sync.Mutex
	all  map[string]CustomModel // by name; nil: the file hasn't been read
}

// Limits of the file, so that it stays quick to read.
const (
	maxCustomModels = 1000
	maxCustomBytes  = 256 << 10 // of the defaults of one
)

type customFile struct {
	Models []CustomModel `json:"models"`
}

// read returns the models. A file that can't be read is an error each time, so that it isn't replaced. The caller holds mu.
func (c *customModels) read() (map[string]CustomModel, error) {
	if c.all != nil {
		return c.all, nil
	}
	var content customFile
	text, err := os.ReadFile(c.file)
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the names of models: %w", err)
	}
	c.all = map[string]CustomModel{}
	for _, m := range content.Models {
		m.Name = catalog.Normal(m.Name)
		c.all[m.Name] = m
	}
	return c.all, nil
}

// change changes the models and writes them to the file. On error they are as they were.
func (c *customModels) change(do func(map[string]CustomModel) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.read()
	if err != nil {
		return err
	}
	changed := maps.Clone(all)
	if err := do(changed); err != nil {
		return err
	}
	if err := atomicfile.WriteFile(c.file, 0o600, atomicfile.JSON(customFile{sortedByName(changed)})); err != nil {
		return fmt.Errorf("writing the names of models: %w", err)
	}
	c.all = changed
	return nil
}

func (c *customModels) get(name string) (CustomModel, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, _ := c.read()
	m, ok := all[catalog.Normal(name)]
	return m, ok
}

func sortedByName(all map[string]CustomModel) []CustomModel {
	return slices.SortedFunc(maps.Values(all), func(a, b CustomModel) int { return strings.Compare(a.Name, b.Name) })
}

// Custom returns the model that a client has made under a name, in any case and in any form of Ollama's. A name of the settings goes
// before it, and so does the key of a model that has come since: nobody can take a key in advance.
func (n *Names) Custom(name string) (CustomModel, bool) {
	m, ok := n.custom.get(ollama.Canonical(name))
	if !ok || n.settings.Load().isAlias(m.Name) {
		return CustomModel{}, false
	}
	if known, err := n.known(m.Name); err == nil && isKeyOf(&known, m.Name) { // which takes a while
		return CustomModel{}, false
	}
	return m, true
}

// AllCustom returns the models that clients have made, sorted by name.
func (n *Names) AllCustom() []CustomModel {
	n.custom.mu.Lock()
	defer n.custom.mu.Unlock()
	all, _ := n.custom.read()
	return sortedByName(all)
}

// SaveCustom gives a model another name, which replaces what a client has made under it before, if may allows that. The errors are
// [IDTaken], another [*translate.Error], may's, and the file system's.
func (n *Names) SaveCustom(ctx context.Context, m CustomModel, may func(before CustomModel) error) error {
	m.Name = catalog.Normal(m.Name)
	if err := m.Defaults.validate(m.Name); err != nil {
		return err
	}
	size := 0
	for field, value := range m.Defaults {
		size += len(field) + len(value)
	}
	if size > maxCustomBytes {
		return translate.Invalid("invalid_value", "", fmt.Sprintf("The defaults of %q are larger than %d bytes: shorten the system "+
			"prompt, or send it with each request.", m.Name, maxCustomBytes))
	}
	if _, replaces := n.Custom(m.Name); !replaces {
		_, err := n.Find(ctx, m.Name)
		missing, isFree := errors.AsType[*catalog.NotFoundError](err)
		if !isFree || len(missing.Ambiguous) > 0 || n.checkID(m.Name, "") != nil {
			return IDTaken(m.Name)
		}
	}
	return n.custom.change(func(all map[string]CustomModel) error {
		before, replaces := all[m.Name]
		switch {
		case replaces:
			if err := may(before); err != nil {
				return err
			}
		case len(all) >= maxCustomModels:
			return translate.NewError(translate.KindConflict, "", "",
				fmt.Sprintf("There are %d names for models, which is the most there can be. Delete some.", len(all)))
		}
		all[m.Name] = m
		return nil
	})
}

// DeleteCustom deletes what a client has made under a name, if may allows it. The model itself stays.
func (n *Names) DeleteCustom(name string, may func(CustomModel) error) error {
	return n.custom.change(func(all map[string]CustomModel) error {
		name = catalog.Normal(name)
		if err := may(all[name]); err != nil {
			return err
		}
		delete(all, name)
		return nil
	})
}

// given returns the key of the model to which the settings, or else a client, have given a name; "" if nobody has.
func (n *Names) given(name string) string {
	if key, ok := n.settings.Load().alias(name); ok {
		return key
	}
	m, _ := n.Custom(name)
	return m.Model
}

// resolve returns the key for a name that was given to a model, or for one that fits an alias, or else the name itself.
func (n *Names) resolve(name string) string {
	return cmp.Or(n.given(name), n.settings.Load().resolve(name))
}

// aliases are the aliases of some settings, in the form in which names are compared.
type aliases struct {
	exact    map[string]string // the models' keys, or other names of theirs
	patterns []aliasPattern    // the closest first
}

type aliasPattern struct{ alias, key string }

const latest = ":latest" // ends names of Ollama's clients, and means nothing

func newAliases(models map[string]ModelSettings) *aliases {
	a := &aliases{exact: map[string]string{}}
	for key, m := range models {
		for _, alias := range m.Aliases {
			alias = catalog.Normal(alias)
			if strings.ContainsAny(alias, "*?[") {
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

func (s *Settings) isAlias(name string) bool { return s.resolve(name) != name }

// resolve returns the key for an alias or for a name that fits one, or else the name itself.
func (s *Settings) resolve(name string) string {
	key, ok := s.alias(name)
	if !ok {
		key, _ = s.pattern(name)
	}
	return cmp.Or(key, name)
}
