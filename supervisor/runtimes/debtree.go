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

// startScript execs the engine, so the process keeps its ID and is killed as usual. It uses the C library of the packages,
// through that library's loader. It locates the tree by its own path, so the tree may be moved or linked to. The engine's PATH
// contains no programs.
const startScript = `#!/bin/sh
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
PATH=/dev/null
export PATH
exec "$root/{loader}" --inhibit-cache --library-path "$root/{libraries}:$root/{libraries}/llama" "$root/usr/bin/llama-server" "$@"
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
	if err := linkBackends(root, filepath.Dir(loader)); err != nil {
		return "", err
	}
	text := strings.NewReplacer("{loader}", loader, "{libraries}", filepath.Dir(loader)).Replace(startScript)
	script := filepath.Join("bin", "llama-server")
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o750); err != nil {
		return "", fmt.Errorf("writing the start script: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(root, script), 0o755, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}); err != nil {
		return "", fmt.Errorf("writing the start script: %w", err)
	}
	return script, syncTree(root)
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

// linkBackends links the CPU backends, one for each generation of processors, into the folder of the loader. The engine looks
// for them in the folder of the running executable, which is the loader. Without them it starts, but can't load a model.
func linkBackends(root, libraries string) error {
	backends, err := filepath.Glob(filepath.Join(root, libraries, "ggml", "backends*", "libggml-cpu*.so"))
	if err != nil || len(backends) == 0 {
		return errors.Join(errors.New("the packages have no CPU backend"), err)
	}
	for _, backend := range backends {
		target, err := filepath.Rel(filepath.Join(root, libraries), backend)
		if err == nil {
			err = os.Symlink(target, filepath.Join(root, libraries, filepath.Base(backend)))
		}
		if err != nil {
			return fmt.Errorf("linking the CPU backends: %w", err)
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
