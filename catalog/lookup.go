package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// listing is what a scan found. It is never changed.
type listing struct {
	models []Model // by key
	known  []string
	byKey  map[string]int
	byName map[string][]int // by all other names

	config    *config
	signature uint64 // of the files that it was made of
	at        time.Time
	took      time.Duration
	number    uint64 // of its scan
}

// newListing makes the indices of models that are sorted by their keys.
func newListing(models []Model) *listing {
	l := &listing{models: models, byKey: make(map[string]int, len(models)), byName: make(map[string][]int, 2*len(models))}
	for i, m := range models {
		l.byKey[m.Key] = i
		if m.Err == nil {
			l.known = append(l.known, m.Key)
		}
		for _, name := range otherNames(m) {
			l.byName[name] = append(l.byName[name], i)
		}
	}
	return l
}

// otherNames are what a model goes by besides its key: without the publisher, with any of its variants or none.
func otherNames(m Model) []string {
	repo, _, _ := strings.Cut(m.Key, "@")
	_, bare, _ := strings.Cut(repo, "/")
	names := []string{repo, bare}
	for _, variant := range m.Variants {
		names = append(names, repo+"@"+variant, bare+"@"+variant)
	}
	if _, short, _ := strings.Cut(m.Key, "/"); !slices.Contains(names, short) {
		names = append(names, short)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == m.Key })
}

// maxNamed bounds how many keys an error's text has.
const maxNamed = 50

// NotFoundError says that no model goes by a name, or that more than one does.
type NotFoundError struct {
	Name      string
	Ambiguous []string // the keys that the name may mean
	Known     []string // with none of them: the keys there are
}

func (e *NotFoundError) Error() string {
	switch {
	case len(e.Ambiguous) > 0:
		return fmt.Sprintf("The model %q is ambiguous: it may be %s.", e.Name, enumerate(e.Ambiguous))
	case len(e.Known) == 0:
		return fmt.Sprintf("The model %q is not known, and there are no models at all: put GGUF files into the models folder, as models/<publisher>/<name>/<file>.gguf.", e.Name)
	default:
		return fmt.Sprintf("The model %q is not known. There are: %s.", e.Name, enumerate(e.Known))
	}
}

func enumerate(keys []string) string {
	if more := len(keys) - maxNamed; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(keys[:maxNamed], ", "), more)
	}
	return strings.Join(keys, ", ")
}

// Lookup finds a model by its key, in any case, or by its name without the publisher where only one publisher has it; else by
// the first of the other names that one goes by. Of a repository's variants a name without one means the oldest, so that it
// goes on meaning the same when others come. What isn't known is looked for on disk again, so that a file is found as soon as
// it is there, and so is what couldn't be used or has changed. The error is a [*NotFoundError] about the first name, or the
// context's.
func (c *Catalog) Lookup(ctx context.Context, name string, others ...string) (Model, error) {
	l, err := c.listing(ctx, false)
	if err != nil {
		return Model{}, err
	}
	if m, err := l.first(name, others); err == nil && m.Err == nil && m.isAsItWas() {
		return m, nil
	}
	if l, err = c.current(ctx); err != nil {
		return Model{}, err
	}
	return l.first(name, others)
}

// Known finds a model as Lookup does, but without a look at the disk: what the last scan has found.
func (c *Catalog) Known(name string, others ...string) (Model, error) {
	l := c.last.Load()
	if l == nil {
		return Model{}, &NotFoundError{Name: name}
	}
	return l.first(name, others)
}

// first is the model that goes by a name, else that of the first of other names that one goes by.
func (l *listing) first(name string, others []string) (Model, error) {
	m, err := l.lookup(name)
	if missing, ok := errors.AsType[*NotFoundError](err); ok && len(missing.Ambiguous) == 0 {
		for _, other := range others {
			if m, err := l.lookup(other); err == nil {
				return m, nil
			}
		}
	}
	return m, err
}

// LookupOnly is like [Catalog.Lookup], but takes a name without a variant only where there is no choice.
func (c *Catalog) LookupOnly(ctx context.Context, name string, others ...string) (Model, error) {
	m, err := c.Lookup(ctx, name, others...)
	if err != nil || !strings.Contains(m.Key, "@") || strings.Contains(name, "@") {
		return m, err
	}
	l, err := c.listing(ctx, false)
	if err != nil {
		return Model{}, err
	}
	repo, _, _ := strings.Cut(m.Key, "@")
	missing := &NotFoundError{Name: name}
	for _, i := range l.byName[repo] {
		missing.Ambiguous = append(missing.Ambiguous, l.models[i].Key)
	}
	if len(missing.Ambiguous) < 2 {
		return m, nil
	}
	return Model{}, missing
}

// isAsItWas tells whether the model's file is still the one that was read.
func (m Model) isAsItWas() bool {
	info, err := os.Stat(m.Path)
	return err == nil && (m.Format != FormatGGUF || info.ModTime().Equal(m.Changed))
}

func (l *listing) lookup(name string) (Model, error) {
	want := normal(name)
	if i, ok := l.byKey[want]; ok {
		return l.models[i], nil
	}
	var near, broken []Model
	for _, i := range l.byName[want] {
		if m := l.models[i]; m.Err == nil {
			near = append(near, m)
		} else {
			broken = append(broken, m)
		}
	}
	if len(near) == 0 {
		near = broken
	}
	if i, ok := plainOf(near); ok {
		return near[i], nil
	}
	err := &NotFoundError{Name: name}
	for _, m := range near {
		err.Ambiguous = append(err.Ambiguous, m.Key)
	}
	if len(near) == 0 {
		err.Known = l.known
	}
	return Model{}, err
}

// plainOf is the one that is meant by a name which all of these go by: the one without a variant if all are of its
// repository, else the oldest of them. A name of several repositories means none.
func plainOf(near []Model) (int, bool) {
	if len(near) == 0 {
		return 0, false
	}
	first, _, _ := strings.Cut(near[0].Key, "@")
	plain, oldest := -1, 0
	for i, m := range near {
		repo, _, hasVariant := strings.Cut(m.Key, "@")
		if repo != first {
			return 0, false
		}
		if !hasVariant {
			plain = i
		}
		if m.Changed.Before(near[oldest].Changed) {
			oldest = i
		}
	}
	if plain >= 0 {
		return plain, true
	}
	return oldest, true
}
