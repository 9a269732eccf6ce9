package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// oldEngine is the age from which an engine is worth replacing: new models need new engines.
const oldEngine = 180 * 24 * time.Hour

// enginePatience bounds how long an engine may take to tell its version, and what it can do. Drivers of GPUs take seconds.
const enginePatience = 25 * time.Second

// checkEngines checks the engines that a server would start. Only the first must be there.
func checkEngines(ctx context.Context, s *Subject) (found findings) {
	for i, e := range node.BuiltIn() {
		setup := s.setupOf(e.Name)
		path, err := e.Find(setup)
		switch {
		case err == nil:
			found = append(found, s.tryEngine(ctx, e, setup, path)...)
		case i == 0 || s.configured(e.Name, "path") != "":
			found.problem(`Get one with "lmcaddy runtime get llama.cpp", or correct the path in the Caddyfile.`, "%s: %s.", e.Name,
				strings.TrimSuffix(err.Error(), "."))
		}
	}
	return found
}

// tryEngine starts an engine to ask for its version.
func (s *Subject) tryEngine(ctx context.Context, e node.Engine, setup process.Setup, path string) (found findings) {
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(s.enginePatience, enginePatience))
	defer cancel()
	get := "lmcaddy runtime get llama.cpp"
	if e.Name == "mlx_lm" {
		get = "lmcaddy runtime get mlx-lm"
	}
	build, err := e.New(setup).Probe(bounded)
	if err != nil {
		why := strings.TrimSuffix(err.Error(), ".")
		if output, failed := engine.Ask(bounded, path, "--version"); failed != nil {
			output = strings.TrimSpace(output) // its last line usually says why
			why = cmp.Or(strings.TrimSpace(output[strings.LastIndexByte(output, '\n')+1:]), why)
		}
		switch {
		case bounded.Err() != nil && ctx.Err() == nil:
			found.problem(fmt.Sprintf("See whether a GPU's driver or the disk hangs, or get another: %s.", get),
				"%s hangs: it doesn't even tell its version.", path)
		case errors.Is(err, syscall.ENOEXEC):
			found.problem(fmt.Sprintf("Get another: %s.", get),
				"%s doesn't start: it was built for another processor or system, or is damaged.", path)
		case strings.Contains(why, "shared librar"):
			found.problem("A library that it needs is missing on this system. Install it, or get a build that brings its own: "+get+".",
				"%s doesn't start: %s.", path, why)
		default:
			found.problem(fmt.Sprintf("Get another: %s.", get), "%s doesn't start: %s.", path, why)
		}
		return found
	}
	said := fmt.Sprintf("%s %s is at %s", build.Engine, build.Version, build.Path)
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > oldEngine {
		return found.warn(fmt.Sprintf("Get the newest: %s.", get), "%s, and is %d months old: it may not run new models.", said,
			time.Since(info.ModTime())/(30*24*time.Hour))
	}
	return found.ok("%s.", said)
}

func (s *Subject) setupOf(name string) process.Setup {
	path := home.Expand(s.configured(name, "path"))
	return process.Setup{
		Path: func() string { return path },
		Command: func() []string {
			if path == "" {
				return nil
			}
			return strings.Fields(path)
		},
		Runtimes: s.Home.Runtimes(), Log: slog.New(slog.DiscardHandler),
	}
}

// configured returns the value of an engine's setting that the configuration has; empty: it has none.
func (s *Subject) configured(engine, name string) string {
	if s.Config == nil {
		return ""
	}
	for _, b := range s.Config.Engines {
		for _, set := range b.Settings {
			if b.Name == engine && set.Name == name && set.Source == resource.FromFile {
				return set.Value
			}
		}
	}
	return ""
}

// setting returns the value of a setting of the app, wherever it comes from; empty: the configuration isn't known.
func (s *Subject) setting(name string) string {
	if s.Config == nil {
		return ""
	}
	for _, setting := range s.Config.Settings {
		if setting.Name == name {
			return setting.Value
		}
	}
	return ""
}

// selected returns the runtime of llama-server that would be used.
func (s *Subject) selected() (runtimes.Runtime, error) {
	return runtimes.Open(s.Home.Runtimes(), nil).Find(runtimes.LlamaCpp, home.Expand(s.configured(node.BuiltIn()[0].Name, "path")))
}
