package runtimes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// GetOptions says which engine to get.
type GetOptions struct {
	// Engine is LlamaCpp or MLXLM.
	Engine string
	// Variant is cpu, cuda, metal, or of llama.cpp vulkan or another one in the release or the distribution's packages; empty: the
	// one that fits the hardware and can be used. One that is named is installed even where it finds no GPU, with a warning.
	Variant string
	// Version is a build of llama.cpp like "b11669" or a release like "v0.7.0", or a version of mlx-lm like "0.31.3"; empty: the
	// latest release of llama.cpp, or the version of mlx-lm that this program is made for.
	Version string
	// Releases is the base URL for releases of llama.cpp, instead of the project's own. It must have the same API, with /latest and
	// /tags/<tag>.
	Releases string
	// Index is the URL of a package index for mlx-lm and all that it requires, instead of those that pip is configured to use.
	Index string
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

// Get downloads and installs an engine, and selects it if none is selected. It doesn't replace an installed one. If ctx ends, it
// leaves nothing behind. If no source has the engine, the error is a *GetError.
func (s *Store) Get(ctx context.Context, o GetOptions) (Runtime, error) {
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	g := &get{store: s, options: o}
	var run func(context.Context) (Runtime, error)
	var err error
	switch o.Engine {
	case LlamaCpp:
		run, err = g.llama, g.checkLlama()
	case MLXLM:
		run, err = g.mlx, g.checkMLX()
	default:
		err = fmt.Errorf("%q can't be fetched, only %s and %s can", o.Engine, LlamaCpp, MLXLM)
	}
	if err == nil {
		g.stage, err = s.newStaging(ctx)
	}
	if err != nil {
		return Runtime{}, err
	}
	defer g.stage.discard()

	found, err := run(ctx)
	if ctx.Err() != nil {
		return Runtime{}, fmt.Errorf("getting %s was interrupted, nothing was installed: %w", o.Engine, context.Cause(ctx))
	}
	if err != nil {
		return Runtime{}, err
	}
	return s.selectIfNone(found)
}

type get struct {
	store   *Store
	options GetOptions
	version string // of llama.cpp the tag of a release; empty: the latest one
	stage   *staging
	from    *remote // of llama.cpp
	tried   []Attempt
}

// put writes the runtime.json of a staged runtime and renames the runtime into place. It replaces an installed one only if that can't
// be used.
func (s *Store) put(m manifest, root string) (Runtime, error) {
	m.FetchedAt = time.Now().UTC().Truncate(time.Second)
	if err := m.write(root); err != nil {
		return Runtime{}, fmt.Errorf("installing: %w", err)
	}
	folder := filepath.Join(s.dir, m.name())
	renamed := os.Rename(root, folder)
	found, err := s.load(m.name())
	if old, unreadable := readManifest(folder); renamed != nil && err != nil && unreadable == nil && old.Engine == m.Engine {
		_ = os.Rename(folder, root+".broken") // for example, its Python is gone
		renamed = os.Rename(root, folder)
		found, err = s.load(m.name())
	}
	if err != nil && renamed != nil {
		return Runtime{}, fmt.Errorf("installing %s: %w (if a broken folder of that name is in the way, delete it)", m.name(), renamed)
	}
	found.Already = renamed != nil // it was installed before, or another process was faster
	return found, err
}

func (s *Store) selectIfNone(found Runtime) (Runtime, error) {
	p, err := programOf(found.Engine)
	if err != nil {
		return Runtime{}, err
	}
	if selected := s.selection(p); selected != "" {
		if _, err := s.loadOf(p, selected); err == nil {
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

// Attempt is a failed attempt to get an engine from a source.
type Attempt struct {
	What string
	Err  error
}

// GetError says what was tried to get an engine, why each attempt failed, and how to install an engine by hand.
type GetError struct {
	Engine string
	Tried  []Attempt
}

const llamaByHand = `To install it by hand:
  macOS           brew install llama.cpp
  Windows         winget install llama.cpp
  Debian testing  apt install llama.cpp-tools
  Nix             nix profile install nixpkgs#llama-cpp
  elsewhere       unpack an archive from https://github.com/ggml-org/llama.cpp/releases
Then put llama-server on PATH, or name it in the Caddyfile:
  engine llama_server {
    path /where/it/is/llama-server
  }`

const mlxByHand = `To install it by hand:
  python3 -m venv ~/mlx && ~/mlx/bin/pip install mlx-lm
Then name it in the Caddyfile, or put mlx_lm.server on PATH:
  engine mlx_lm {
    command /where/your/home/is/mlx/bin/mlx_lm.server
  }`

func (e *GetError) Error() string {
	var text strings.Builder
	text.WriteString(e.Engine + " could not be got.\n")
	for _, attempt := range e.Tried {
		reason := strings.ReplaceAll(attempt.Err.Error(), "\n", "; ") // one line for each
		text.WriteString("  " + attempt.What + ": " + reason + "\n")
	}
	if e.Engine == MLXLM {
		return text.String() + mlxByHand
	}
	return text.String() + llamaByHand
}

// Unwrap returns the errors of all attempts.
func (e *GetError) Unwrap() []error {
	errs := make([]error, len(e.Tried))
	for i, attempt := range e.Tried {
		errs[i] = attempt.Err
	}
	return errs
}
