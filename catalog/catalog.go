// Package catalog finds the models on disk, gives them keys, and reads their properties from their files.
//
// A [Catalog] scans its folders when a call can't be answered from the last scan, in the goroutine of the caller. The only
// goroutines of its own read headers during a scan. A header is read once and cached until the size or modification time of
// the file changes, over restarts as well if [Catalog.SetSummary] has been called. A file that can't be used is listed as a
// model with the reason in [Model.Err], so that users learn why.
//
// Folders may be nested. The files of other programs are read in place, recognized by the structure of their folders: see [Layout].
package catalog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/model"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// What models are is described in package model, which whoever only has to know that may import: it reads no files.
type (
	// Model is a model on disk, or on a remote.
	Model = model.Model
	// Format is a model's file format.
	Format = model.Format
	// Layout is the structure of the folders that a model's files are in.
	Layout = model.Layout
	// Type is what a model is for.
	Type = model.Type
	// Pooling is the way in which a model computes one vector or number from many tokens.
	Pooling = model.Pooling
	// Reasoning describes the choice of reasoning effort that a model offers.
	Reasoning = model.Reasoning
	// Quantization says how a model's weights are stored.
	Quantization = model.Quantization
)

// The constants of these types.
const (
	FormatGGUF = model.FormatGGUF
	FormatMLX  = model.FormatMLX

	LayoutPlain  = model.LayoutPlain
	LayoutHub    = model.LayoutHub
	LayoutCache  = model.LayoutCache
	LayoutOllama = model.LayoutOllama

	TypeLLM       = model.TypeLLM
	TypeEmbedding = model.TypeEmbedding

	PoolingNone = model.PoolingNone
	PoolingMean = model.PoolingMean
	PoolingCLS  = model.PoolingCLS
	PoolingLast = model.PoolingLast
	PoolingRank = model.PoolingRank
)

// The result of a scan is used for one second before new models are looked for. After a slow scan it is used for longer, so
// that scans take no more than a tenth of the time, but changes are still noticed within seconds.
const (
	freshFor     = time.Second
	freshForMost = 5 * time.Second
	freshRatio   = 10
)

// Catalog holds the models of some folders. Its methods may be called from any goroutine.
type Catalog struct {
	log    *slog.Logger
	limits limits

	scanning chan struct{} // a semaphore that is held during a scan
	headers  map[string]header
	reported map[string]string // the files reported to the log, with the reasons
	saved    summary
	starved  error // of the current scan: something couldn't be read because no file descriptor was left

	changed func([]Model) // see SetChanged

	config atomic.Pointer[config]
	last   atomic.Pointer[listing]
	begun  atomic.Uint64 // number of scans
}

// config says what to scan. It is immutable.
type config struct {
	roots   []string
	formats []Format // that are listed
	files   []Files  // that are looked for, beside those that are known
	others  *[]Model // models that aren't on this machine; nil: none
}

// New makes a catalog of no folders, which lists models of some formats: those that there is an engine for.
func New(log *slog.Logger, formats ...Format) *Catalog {
	c := &Catalog{
		log: log, limits: defaultLimits, scanning: make(chan struct{}, 1),
		headers: map[string]header{}, reported: map[string]string{},
	}
	c.config.Store(&config{formats: formats})
	return c
}

// SetRoots sets the folders to scan. If two folders hold the same file, or two models with the same key, the first folder
// wins. It does no I/O. A folder that doesn't exist holds no models.
func (c *Catalog) SetRoots(roots []string) {
	c.change(func(to *config) { to.roots = slices.Clone(roots) })
}

// SetOthers sets models that aren't on this machine, which are listed beside the others. One with the key of a model on disk isn't.
// The order of the models doesn't matter. It reports whether they have changed, so that a Refresh is due.
func (c *Catalog) SetOthers(models []Model) (changed bool) {
	models = slices.Clone(models)
	slices.SortFunc(models, func(a, b Model) int { return strings.Compare(a.Key, b.Key) })
	if old := c.config.Load().others; old == nil && len(models) == 0 || old != nil && reflect.DeepEqual(*old, models) {
		return false
	}
	c.change(func(to *config) { to.others = &models })
	return true
}

func (c *Catalog) change(do func(*config)) {
	for {
		old := c.config.Load()
		next := *old
		do(&next)
		if slices.Equal(old.roots, next.roots) && slices.Equal(old.formats, next.formats) && len(old.files) == len(next.files) &&
			old.others == next.others || c.config.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Models returns the models, sorted by key, as they are on disk now. The slice must not be modified. If no file descriptor is
// left to scan with, it returns the result of the last scan, or else an error that says so (see package openfiles).
func (c *Catalog) Models(ctx context.Context) ([]Model, error) {
	l, err := c.listing(ctx, true)
	if err != nil {
		return nil, err
	}
	return l.models, nil
}

// Refresh scans the disk now, even if the last scan is recent. It is called after a change of the models folder.
func (c *Catalog) Refresh(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	_, err := c.rescan(ctx)
	return err
}

// listing returns the last listing, or that of a new scan if there is none for this config, or if fresh is set and it is old.
func (c *Catalog) listing(ctx context.Context, fresh bool) (*listing, error) {
	if l := c.last.Load(); c.answers(l, fresh) {
		return l, nil
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	if l := c.last.Load(); c.answers(l, fresh) { // of another caller's scan
		return l, nil
	}
	l, err := c.rescan(ctx)
	if last := c.last.Load(); openfiles.AreExhausted(err) && c.answers(last, false) {
		return last, nil // models that can't be read now still exist
	}
	return l, err
}

// current returns the listing of a scan that begins after the call, so it finds everything that is there now. Callers wait so
// that scans take no more than one part in freshRatio of the time, whatever names clients request. Waiting callers share a scan.
func (c *Catalog) current(ctx context.Context) (*listing, error) {
	before := c.begun.Load()
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	if l := c.last.Load(); c.answers(l, false) {
		if l.number > before {
			return l, nil // of another caller's scan
		}
		select {
		case <-time.After(time.Until(l.at.Add(min(freshRatio*l.took, freshForMost)))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.rescan(ctx)
}

func (c *Catalog) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.scanning <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Catalog) end() { <-c.scanning }

func (c *Catalog) rescan(ctx context.Context) (*listing, error) {
	number, before := c.begun.Add(1), c.last.Load()
	l, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	l.number = number
	c.last.Store(l)
	if c.changed != nil && before != nil {
		if models := differing(before.models, l.models); len(models) > 0 {
			c.changed(models)
		}
	}
	c.saved.write(c.headers, false, c.log)
	return l, nil
}

func (c *Catalog) answers(l *listing, fresh bool) bool {
	if l == nil || l.config != c.config.Load() {
		return false
	}
	return !fresh || time.Since(l.at) <= max(freshFor, min(freshRatio*l.took, freshForMost))
}

// report logs that a file can't be used, once for each reason. If the reason is that no file descriptor is left, it notes that
// instead: the scan is incomplete, and must be discarded.
func (c *Catalog) report(path string, reason error) {
	if openfiles.AreExhausted(reason) {
		c.starved = reason
		return
	}
	if c.reported[path] == reason.Error() {
		return
	}
	if len(c.reported) > maxReported {
		clear(c.reported)
	}
	c.reported[path] = reason.Error()
	c.log.Warn("a model file can't be used", "file", path, "reason", reason)
}

// maxReported bounds the number of files in reported.
const maxReported = 10_000

var (
	errTooDeep = errors.New("the folders are nested too deeply")
	errLoop    = errors.New("it links to a folder that contains it")
)

// SetChanged sets what is called after a scan that finds other models than the one before, with those that were added or deleted, or whose
// files have changed. It must be called before the first scan. The function must return at once, and must not call back.
func (c *Catalog) SetChanged(changed func([]Model)) { c.changed = changed }

// differing returns the models that are in only one of two lists, which are sorted by key, or that differ.
func differing(before, after []Model) (changed []Model) {
	if len(before) == len(after) && (len(after) == 0 || &before[0] == &after[0]) {
		return nil // nothing was read anew
	}
	for len(before) > 0 && len(after) > 0 {
		a, b := &before[0], &after[0]
		order := cmp.Compare(a.Key, b.Key)
		switch {
		case order < 0:
			changed = append(changed, *a)
		case order > 0:
			changed = append(changed, *b)
		case differs(a, b):
			changed = append(changed, *b)
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
	return append(append(changed, before...), after...)
}

// differs reports whether two models of one key aren't of the same files.
func differs(m, o *Model) bool {
	return m.Path != o.Path || m.Projector != o.Projector || m.SizeBytes != o.SizeBytes || !m.Changed.Equal(o.Changed) ||
		(m.Err == nil) != (o.Err == nil)
}
