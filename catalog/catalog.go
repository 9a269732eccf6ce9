// Package catalog knows the models on disk: which there are, under which keys, and what their files say of them.
//
// A [Catalog] scans its folders when it is asked something it can't answer from its last scan, in the goroutine that
// asks; it has none of its own. What a file's header says is read once and kept for as long as the file's size and
// modification time stay. A file that can't be used is a model too, with the reason in [Model.Err], so that whoever asks
// for it learns why.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// freshFor is how long a scan answers for, when something is asked that it doesn't know.
const freshFor = time.Second

// Catalog is the set of models below some folders. Its methods may be called from any goroutine.
type Catalog struct {
	log *slog.Logger

	scanning sync.Mutex // held for the length of a scan
	headers  map[string]header
	reported map[string]string // the broken files that the log has been told of

	roots atomic.Pointer[[]string]
	last  atomic.Pointer[listing]
}

// listing is what a scan found. It is never changed.
type listing struct {
	models []Model // by key
	at     time.Time
	roots  *[]string
}

// New makes a catalog of no folders.
func New(log *slog.Logger) *Catalog {
	c := &Catalog{log: log, headers: map[string]header{}, reported: map[string]string{}}
	c.roots.Store(&[]string{})
	return c
}

// SetRoots gives the folders whose models the catalog knows, the first of which wins where two have the same key. It does
// no I/O. A folder that doesn't exist holds no models.
func (c *Catalog) SetRoots(roots []string) {
	if slices.Equal(roots, *c.roots.Load()) {
		return
	}
	roots = slices.Clone(roots)
	c.roots.Store(&roots)
}

// Models lists the models by key, as they are on disk now. It is not to be changed.
func (c *Catalog) Models(ctx context.Context) ([]Model, error) {
	l, err := c.listing(ctx, true)
	if err != nil {
		return nil, err
	}
	return l.models, nil
}

// NotFoundError says that no model goes by a name, or that more than one does.
type NotFoundError struct {
	Name      string
	Ambiguous []string // the keys that the name may mean
	Known     []string // with none of them: the keys there are
}

func (e *NotFoundError) Error() string {
	switch {
	case len(e.Ambiguous) > 0:
		return fmt.Sprintf("The model %q is ambiguous: it may be %s.", e.Name, strings.Join(e.Ambiguous, ", "))
	case len(e.Known) == 0:
		return fmt.Sprintf("The model %q is not known, and there are no models at all: put GGUF files into the models folder, as models/<publisher>/<name>/<file>.gguf.", e.Name)
	default:
		return fmt.Sprintf("The model %q is not known. There are: %s.", e.Name, strings.Join(e.Known, ", "))
	}
}

// Lookup finds a model by its key, in any case, or by its name without the publisher where only one model has it. A name
// that isn't known, or whose file couldn't be used, is looked for on disk again. The error is a [*NotFoundError] or the
// context's.
func (c *Catalog) Lookup(ctx context.Context, name string) (Model, error) {
	l, err := c.listing(ctx, false)
	if err != nil {
		return Model{}, err
	}
	if m, err := l.lookup(name); err == nil && m.Err == nil {
		return m, nil
	}
	if l, err = c.listing(ctx, true); err != nil {
		return Model{}, err
	}
	return l.lookup(name)
}

func (l *listing) lookup(name string) (Model, error) {
	want := normal(name)
	if i, ok := slices.BinarySearchFunc(l.models, want, func(m Model, key string) int { return cmp.Compare(m.Key, key) }); ok {
		return l.models[i], nil
	}
	var near, nearBroken []Model
	for _, m := range l.models {
		repo, _, _ := strings.Cut(m.Key, "@")
		_, bare, _ := strings.Cut(m.Key, "/")
		_, bareRepo, _ := strings.Cut(repo, "/")
		switch {
		case want != bare && want != repo && want != bareRepo:
		case m.Err == nil:
			near = append(near, m)
		default:
			nearBroken = append(nearBroken, m)
		}
	}
	if len(near) == 0 {
		near = nearBroken
	}
	if len(near) == 1 {
		return near[0], nil
	}
	return Model{}, l.notFound(name, near)
}

func (l *listing) notFound(name string, near []Model) *NotFoundError {
	err := &NotFoundError{Name: name}
	for _, m := range near {
		err.Ambiguous = append(err.Ambiguous, m.Key)
	}
	for _, m := range l.models {
		if len(near) == 0 && m.Err == nil {
			err.Known = append(err.Known, m.Key)
		}
	}
	return err
}

// listing is the last scan's, or a new one's if there was none of these roots, or if fresh and the last is old.
func (c *Catalog) listing(ctx context.Context, fresh bool) (*listing, error) {
	if l := c.last.Load(); c.answers(l, fresh) {
		return l, nil
	}
	c.scanning.Lock()
	defer c.scanning.Unlock()
	if l := c.last.Load(); c.answers(l, fresh) { // another caller's scan
		return l, nil
	}
	l, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	c.last.Store(l)
	return l, nil
}

func (c *Catalog) answers(l *listing, fresh bool) bool {
	return l != nil && l.roots == c.roots.Load() && (!fresh || time.Since(l.at) <= freshFor)
}

// report tells the log of files that can't be used, once for each reason.
func (c *Catalog) report(path string, reason error) {
	if c.reported[path] == reason.Error() {
		return
	}
	c.reported[path] = reason.Error()
	c.log.Warn("a model file can't be used", "file", path, "reason", reason)
}

var (
	errTooDeep = errors.New("the folders are nested too deeply")
	errLoop    = errors.New("it links to a folder that it lies in")
)
