// Package catalog knows the models on disk: which there are, under which keys, and what their files say of them.
//
// A [Catalog] scans its folders when it is asked something it can't answer from its last scan, in the goroutine that
// asks; it has none of its own, but for those that read headers while a scan lasts. What a file's header says is read once
// and kept for as long as the file's size and modification time stay, over restarts too if [Catalog.SetSummary] gives a
// place for it. A file that can't be used is a model too, with the reason in [Model.Err], so that whoever asks for it learns
// why.
//
// Folders may be nested as they like. What other programs keep is read where it is, recognized by its shape: see [Layout].
package catalog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// A scan answers for a second, when something is asked that it doesn't know; one that took long, for longer: no more than
// every tenth second is spent on scans, as long as changes are seen within seconds.
const (
	freshFor     = time.Second
	freshForMost = 5 * time.Second
	freshRatio   = 10
)

// Catalog is the set of models below some folders. Its methods may be called from any goroutine.
type Catalog struct {
	log    *slog.Logger
	limits limits

	scanning chan struct{} // holds one token, which is taken for the length of a scan
	headers  map[string]header
	folders  map[string]folderList
	reported map[string]string // the files that the log has been told of, with the reasons
	saved    summary
	starved  error // of the scan that runs: something couldn't be read since no file descriptor was left

	config atomic.Pointer[config]
	last   atomic.Pointer[listing]
	begun  atomic.Uint64 // scans
}

// config is what the catalog looks at. It is never changed.
type config struct {
	roots   []string
	formats []Format
}

// New makes a catalog of no folders, which lists models of the GGUF format.
func New(log *slog.Logger) *Catalog {
	c := &Catalog{
		log: log, limits: defaultLimits, scanning: make(chan struct{}, 1),
		headers: map[string]header{}, folders: map[string]folderList{}, reported: map[string]string{},
	}
	c.config.Store(&config{formats: []Format{FormatGGUF}})
	return c
}

// SetRoots gives the folders whose models the catalog knows. The first of them wins where two hold the same file, or two
// that can't be told apart by their keys. It does no I/O. A folder that doesn't exist holds no models.
func (c *Catalog) SetRoots(roots []string) {
	c.change(func(to *config) { to.roots = slices.Clone(roots) })
}

// SetFormats says which models are listed: those that there is an engine for.
func (c *Catalog) SetFormats(formats ...Format) {
	c.change(func(to *config) { to.formats = slices.Clone(formats) })
}

func (c *Catalog) change(do func(*config)) {
	for {
		old := c.config.Load()
		next := *old
		do(&next)
		if slices.Equal(old.roots, next.roots) && slices.Equal(old.formats, next.formats) || c.config.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Models lists the models by key, as they are on disk now. It is not to be changed. While no file descriptor is left to look
// at the disk with, it is what was there before; with nothing known from before, the error says so (see package openfiles).
func (c *Catalog) Models(ctx context.Context) ([]Model, error) {
	l, err := c.listing(ctx, true)
	if err != nil {
		return nil, err
	}
	return l.models, nil
}

// Refresh looks at the disk now, however fresh the last scan is. It is for who has just changed something there.
func (c *Catalog) Refresh(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	_, err := c.rescan(ctx)
	return err
}

// listing is the last scan's, or a new one's if there was none of these folders, or if fresh and the last is old.
func (c *Catalog) listing(ctx context.Context, fresh bool) (*listing, error) {
	if l := c.last.Load(); c.answers(l, fresh) {
		return l, nil
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	if l := c.last.Load(); c.answers(l, fresh) { // another caller's scan
		return l, nil
	}
	l, err := c.rescan(ctx)
	if last := c.last.Load(); openfiles.AreExhausted(err) && c.answers(last, false) {
		return last, nil // models that can't be looked at just now aren't gone
	}
	return l, err
}

// current is a scan that begins after it was asked for, so that what was there then is found. Who asks waits, so that no more
// than one part in freshRatio of the time is spent on scans, whatever names are asked for and however often; all who wait share
// one scan.
func (c *Catalog) current(ctx context.Context) (*listing, error) {
	before := c.begun.Load()
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	if l := c.last.Load(); c.answers(l, false) {
		if l.number > before {
			return l, nil // another caller's scan
		}
		rest := time.NewTimer(time.Until(l.at.Add(min(freshRatio*l.took, freshForMost))))
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return c.rescan(ctx)
}

// begin waits until no other scan runs.
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
	number := c.begun.Add(1)
	l, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	l.number = number
	c.last.Store(l)
	c.saved.write(c.headers, false, c.log)
	return l, nil
}

func (c *Catalog) answers(l *listing, fresh bool) bool {
	if l == nil || l.config != c.config.Load() {
		return false
	}
	return !fresh || time.Since(l.at) <= max(freshFor, min(freshRatio*l.took, freshForMost))
}

// report tells the log of what can't be used, once for each reason. What can't be looked at just now, since no file descriptor
// is left, is noted instead: a scan that leaves it out is worth nothing.
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

// maxReported bounds what is remembered of what the log was told.
const maxReported = 10_000

var (
	errTooDeep = errors.New("the folders are nested too deeply")
	errLoop    = errors.New("it links to a folder that it lies in")
)
