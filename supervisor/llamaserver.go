package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// LlamaServer is llama.cpp's llama-server as a process. It is run in the mode in which llama.cpp's own router runs its
// children: it then tells its state on standard output, and ends when standard input closes. A build that doesn't know
// the mode is read by its log.
type LlamaServer struct {
	// Locate finds the executable. It is asked for each launch, since what is installed may change.
	Locate func() (string, error)
	// Runtimes is a folder whose folders are each a whole runtime. An executable in one of them may use all of it. Empty:
	// there is none.
	Runtimes string

	mu     sync.Mutex
	probed map[string]probedBuild // by path
}

type probedBuild struct {
	build Build
	size  int64
	at    time.Time
}

// probeTimeout bounds how long the engine may take to say its version; it takes 20 ms.
const probeTimeout = 20 * time.Second

// Probe asks the executable for its version and its flags, once for each state of the file.
func (e *LlamaServer) Probe(ctx context.Context) (Build, error) {
	path, err := e.Locate()
	if err != nil {
		return Build{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Build{}, fmt.Errorf("llama-server: %w", err)
	}
	if p, ok := e.known(path); ok && p.size == info.Size() && p.at.Equal(info.ModTime()) {
		return p.build, nil
	}
	version, err := ask(ctx, path, "--version")
	if err != nil {
		return Build{}, err
	}
	help, err := ask(ctx, path, "--help")
	if err != nil {
		return Build{}, err
	}
	build := Build{Engine: "llama.cpp", Version: cmp.Or(engine.LlamaVersion(version), "unknown"), Path: path, Flags: llamaFlags(help)}
	build.Root, build.Script = e.rootOf(path), engine.IsScript(path)
	build.Sockets = runtime.GOOS != "windows" && strings.Contains(build.Flags["--host"], ".sock")
	if _, ok := build.Flags["--list-devices"]; ok {
		devices, err := ask(ctx, path, "--list-devices")
		switch {
		case err == nil:
			build.Devices = llamaDevices(devices)
		case openfiles.AreExhausted(err):
			return Build{}, err // what is returned otherwise is remembered
		}
	}
	e.remember(path, probedBuild{build, info.Size(), info.ModTime()})
	return build, nil
}

// rootOf is the folder of the runtime that an executable is part of; empty if it is of none.
func (e *LlamaServer) rootOf(path string) string {
	below, err := filepath.Rel(e.Runtimes, path)
	if e.Runtimes == "" || err != nil || !filepath.IsLocal(below) {
		return ""
	}
	name, rest, _ := strings.Cut(filepath.ToSlash(below), "/")
	if rest == "" {
		return ""
	}
	return filepath.Join(e.Runtimes, name)
}

func (e *LlamaServer) known(path string) (probedBuild, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.probed[path]
	return p, ok
}

func (e *LlamaServer) remember(path string, p probedBuild) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probed == nil {
		e.probed = map[string]probedBuild{}
	}
	e.probed[path] = p
}

func ask(ctx context.Context, path, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := engine.Ask(ctx, path, flag)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, flag, err)
	}
	return out, nil
}

// Health is public, and answers with 503 while the model is loading.
func (e *LlamaServer) Health() string { return "/health" }

// Stop asks over the protocol, then closes standard input. SIGTERM is no use: in this mode an idle llama-server ignores it,
// and a busy one hangs.
func (e *LlamaServer) Stop() []StopStep {
	return []StopStep{
		{Action: StopWrite, Text: llamaExit, Wait: 500 * time.Millisecond},
		{Action: StopCloseInput, Wait: 500 * time.Millisecond},
	}
}
