package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// GetOptions says which engine to get.
type GetOptions struct {
	// Engine is "llama.cpp".
	Engine string
	// Variant is cpu, vulkan, cuda, metal or another one in the release; empty: the one that fits the hardware.
	Variant string
	// Version is a build like "b11669" or a release like "v0.7.0"; empty: the latest release.
	Version string
	// Releases is the base URL for releases, instead of the project's own. It must have the same API, with /latest and
	// /tags/<tag>.
	Releases string
	// Progress is called often, from one goroutine at a time. It may be nil.
	Progress func(Progress)
}

// Progress is the progress of a Get.
type Progress struct {
	Doing string // the current step, such as "fetching llama-b11669-bin-ubuntu-x64.tar.gz"
	// Done and Total are bytes of this step. Total is 0 if unknown.
	Done, Total int64
	// Percent is the progress of this step, 0 to 100.
	Percent float64
}

// staged is an engine in a staging folder, ready to be installed.
type staged struct {
	root       string // the folder to install
	executable string // relative to root
	variant    string
	origin     string
	pkg        string // the distribution's package with its version; may be empty
	installed  string // if set: the installed runtime that the source would give again
}

// Get downloads and installs an engine, and selects it if none is selected. It doesn't replace an installed one. If ctx ends, it
// leaves nothing behind. If no source has the engine, the error is a *GetError.
func (s *Store) Get(ctx context.Context, o GetOptions) (Runtime, error) {
	if o.Engine != LlamaCpp {
		return Runtime{}, fmt.Errorf("%q can't be fetched, only %s can", o.Engine, LlamaCpp)
	}
	tag, err := normalVersion(o.Version)
	if err != nil {
		return Runtime{}, err
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	stage, err := s.newStaging(ctx)
	if err != nil {
		return Runtime{}, err
	}
	defer stage.discard()
	g := &get{store: s, options: o, tag: tag, stage: stage, from: newRemote(o.Releases, s.stall)}
	defer g.from.close()

	found, err := g.run(ctx)
	if ctx.Err() != nil {
		return Runtime{}, fmt.Errorf("getting %s was interrupted, nothing was installed: %w", o.Engine, context.Cause(ctx))
	}
	if err != nil {
		return Runtime{}, err
	}
	return s.selectIfNone(found)
}

// selectIfNone selects a runtime, unless the selected one works.
func (s *Store) selectIfNone(found Runtime) (Runtime, error) {
	if selected := s.selection(); selected != "" {
		if _, err := s.load(selected); err == nil {
			found.Selected = selected == found.Name
			return found, nil
		}
	}
	if err := s.Select(found.Name); err != nil {
		return Runtime{}, err
	}
	found.Selected = true
	return found, nil
}

// get is a running Get.
type get struct {
	store   *Store
	options GetOptions
	tag     string
	stage   *staging
	from    *remote
	tried   []Attempt
}

func (g *get) run(ctx context.Context) (Runtime, error) {
	found, err := g.fromRelease(ctx)
	if err == nil || !fallsBack(err) {
		return found, g.explain(err)
	}
	if g.store.packages == nil || ctx.Err() != nil {
		return Runtime{}, g.explain(err)
	}
	// The distribution has one version and variant.
	if g.tag != "" || (g.options.Variant != "" && g.options.Variant != variantCPU) {
		g.fail("distribution's packages", errors.New("not asked, because they come in one version, for the CPU"))
		return Runtime{}, g.explain(err)
	}
	ready, err := g.store.packages(ctx, g.stage, g.store.packaged, g.options.Progress)
	switch {
	case err != nil:
	case ready.installed != "":
		found, err = g.store.load(ready.installed)
		found.Already = true
	default:
		found, err = g.install(ctx, ready)
	}
	if err != nil {
		g.fail("distribution's packages", err)
	}
	return found, g.explain(err)
}

// wishError says that the requested version or variant doesn't exist.
type wishError struct{ text string }

func (e *wishError) Error() string { return e.text }

// fallsBack reports whether to try another source after an error. After a wrong checksum, or with an archive that leads out of
// its folder, it returns false: these must not go unnoticed.
func fallsBack(err error) bool {
	_, source := errors.AsType[*sourceError](err)
	_, unfit := errors.AsType[*unfitError](err)
	return source || unfit
}

func (g *get) fail(what string, err error) { g.tried = append(g.tried, Attempt{what, err}) }

// explain returns an error with all that was tried, or nil for nil.
func (g *get) explain(err error) error {
	if err == nil || len(g.tried) == 0 {
		return err
	}
	return &GetError{Engine: g.options.Engine, Tried: g.tried}
}

// fromRelease installs the first build of the official release that runs on this machine.
func (g *get) fromRelease(ctx context.Context) (Runtime, error) {
	what := "official release"
	g.options.Progress(Progress{Doing: "asking for the release's files"})
	published, err := g.from.findRelease(ctx, g.tag)
	var builds []build
	if err == nil {
		builds, err = g.store.hardware(ctx).choose(published, g.options.Variant)
	}
	if err != nil {
		if _, wish := errors.AsType[*wishError](err); !wish { // it needs no explanation
			g.fail(what, err)
		}
		return Runtime{}, err
	}
	for _, b := range builds {
		var found Runtime
		if found, err = g.build(ctx, published, b); err == nil {
			return found, nil
		}
		g.fail(fmt.Sprintf("%s %s, %s", what, published.tag, b.variant), err)
		if _, unfit := errors.AsType[*unfitError](err); !unfit {
			return Runtime{}, err
		}
		g.store.log.Warn("this build doesn't run here", "build", b.archive.name, "error", err)
	}
	return Runtime{}, err
}

func (g *get) build(ctx context.Context, published release, b build) (Runtime, error) {
	if found, err := g.store.load(runtimeName(LlamaCpp, published.tag, b.variant)); err == nil {
		found.Already = true
		return found, nil
	}
	root, err := g.fetch(ctx, b.archive, "root")
	if err != nil {
		return Runtime{}, err
	}
	executable, err := findServer(root)
	if err != nil {
		return Runtime{}, fmt.Errorf("%s: %w", b.archive.name, err)
	}
	if b.libraries != nil {
		libraries, err := g.fetch(ctx, *b.libraries, "libraries")
		if err != nil {
			return Runtime{}, err
		}
		if err := moveLibraries(libraries, filepath.Join(root, filepath.Dir(executable))); err != nil {
			return Runtime{}, err
		}
	}
	return g.install(ctx, staged{
		root: root, executable: executable, variant: b.variant, origin: "official release " + published.tag,
	})
}

// fetch downloads an archive and unpacks it into a folder of the staging folder.
func (g *get) fetch(ctx context.Context, a asset, folder string) (string, error) {
	downloads, err := g.stage.folder("download")
	if err != nil {
		return "", err
	}
	root, err := g.stage.folder(folder)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(downloads, filepath.Base(a.name))
	err = g.from.download(ctx, a, archive, func(done, total int64) {
		p := Progress{Doing: "fetching " + a.name, Done: done, Total: total}
		if total > 0 {
			p.Percent = 100 * float64(done) / float64(total)
		}
		g.options.Progress(p)
	})
	if err != nil {
		return "", err
	}
	g.options.Progress(Progress{Doing: "unpacking " + a.name})
	if err := unpack(ctx, archive, root); err != nil {
		return "", err
	}
	return root, os.Remove(archive)
}

// install checks that a staged engine starts, writes its runtime.json and renames it into place.
func (g *get) install(ctx context.Context, ready staged) (Runtime, error) {
	g.options.Progress(Progress{Doing: "checking that it starts"})
	version, err := prove(ctx, filepath.Join(ready.root, ready.executable))
	if err != nil {
		return Runtime{}, err
	}
	m := manifest{
		Engine: LlamaCpp, Version: version, Variant: ready.variant, Origin: ready.origin, Package: ready.pkg,
		Executable: filepath.ToSlash(ready.executable), FetchedAt: time.Now().UTC().Truncate(time.Second),
	}
	if found, err := g.store.load(m.name()); err == nil {
		found.Already = true
		if ready.pkg != "" {
			if err := g.store.notePackage(found.Name, ready.pkg); err != nil {
				g.store.log.Warn("the package will be fetched again next time", "runtime", found.Name, "error", err)
			}
		}
		return found, nil
	}
	if err := m.write(ready.root); err != nil {
		return Runtime{}, fmt.Errorf("installing: %w", err)
	}
	renamed := os.Rename(ready.root, filepath.Join(g.store.dir, m.name()))
	found, err := g.store.load(m.name())
	if err != nil && renamed != nil {
		return Runtime{}, fmt.Errorf("installing %s: %w (if a broken folder of that name is in the way, delete it)", m.name(), renamed)
	}
	found.Already = renamed != nil // another process was faster
	return found, err
}
