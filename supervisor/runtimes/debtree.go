package runtimes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// startScript execs a program, so the process keeps its ID and is killed as usual. It uses the C library of the packages,
// through that library's loader. It locates the tree by its own path, so the tree may be moved or linked to. The program's PATH
// contains no programs.
const startScript = `#!/bin/sh
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
PATH=/dev/null
export PATH
exec "$root/{loader}" --inhibit-cache --library-path "$root/{libraries}:$root/{libraries}/llama" "$root/{program}" "$@"
`

// makeStartable writes the start script of a tree of packages, and returns its path within the tree.
func makeStartable(root string) (string, error) {
	if info, err := os.Stat(filepath.Join(root, "usr/bin/llama-server")); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(errors.New("the packages have no usr/bin/llama-server"), err)
	}
	loader, err := findLoader(root)
	if err != nil {
		return "", err
	}
	backends, err := filepath.Glob(filepath.Join(root, filepath.Dir(loader), "ggml", "backends*", "libggml-cpu*.so"))
	if err != nil || len(backends) == 0 {
		return "", errors.Join(errors.New("the packages have no CPU backend"), err)
	}
	if err := linkBackends(root, filepath.Dir(loader), backends); err != nil {
		return "", err
	}
	script := filepath.Join("bin", "llama-server")
	if err := writeScript(root, loader, filepath.Join("usr", "bin", "llama-server"), script); err != nil {
		return "", err
	}
	return script, syncTree(root)
}

// makeWorkerStartable writes the start script of the worker that is in a tree of packages, and links the backend that it and llama-server
// need. The script is written last: a tree that has it is complete.
func makeWorkerStartable(root string) error {
	loader, err := findLoader(root)
	if err != nil {
		return err
	}
	workers, _ := filepath.Glob(filepath.Join(root, "usr", "libexec", "*", "llama", "bin", workerName)) // the pattern is valid
	backends, _ := filepath.Glob(filepath.Join(root, filepath.Dir(loader), "ggml", "backends*", "libggml-rpc.so"))
	if len(workers) == 0 || len(backends) == 0 {
		return fmt.Errorf("the packages have no %s, or not the backend for it", workerName)
	}
	if err := linkBackends(root, filepath.Dir(loader), backends); err != nil {
		return err
	}
	program, err := filepath.Rel(root, workers[0])
	if err != nil {
		return err
	}
	return errors.Join(syncTree(root), writeScript(root, loader, program, filepath.Join("bin", workerName)))
}

// writeScript writes a start script of a program. All paths are within the tree.
func writeScript(root, loader, program, script string) error {
	text := strings.NewReplacer("{loader}", loader, "{libraries}", filepath.Dir(loader), "{program}", program).Replace(startScript)
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(script)), 0o750); err != nil {
		return fmt.Errorf("writing the start script: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(root, script), 0o755, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}); err != nil {
		return fmt.Errorf("writing the start script: %w", err)
	}
	return nil
}

// findLoader returns the path of the dynamic loader within the tree. It is in the architecture's folder, with the libraries.
func findLoader(root string) (string, error) {
	for _, pattern := range []string{"usr/lib/*-linux-gnu*/ld-linux*.so.*", "usr/lib/*-linux-gnu*/ld64.so.*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			continue
		}
		return filepath.Rel(root, found[0])
	}
	return "", errors.New("the packages have no dynamic loader")
}

// linkBackends links backends into the folder of the loader. The engine looks for them in the folder of the running executable, which is
// the loader. There is a CPU backend for each generation of processors; without them the engine starts, but can't load a model.
func linkBackends(root, libraries string, backends []string) error {
	for _, backend := range backends {
		link := filepath.Join(root, libraries, filepath.Base(backend))
		target, err := filepath.Rel(filepath.Dir(link), backend)
		if err == nil {
			err = os.Symlink(target, link)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("linking the backends: %w", err)
		}
	}
	return nil
}

// syncTree flushes all files to disk. The rename that installs them must not get there first.
func syncTree(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}
