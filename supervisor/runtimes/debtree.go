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

// startScript becomes the engine by exec, so that the process keeps its id and is killed like any other. It uses the C
// library that the packages came with, by way of that library's own loader. It finds the tree from where it lies itself,
// so the tree may be moved, and may be reached by way of links. The engine gets a PATH on which it finds no helpers.
const startScript = `#!/bin/sh
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
PATH=/dev/null
export PATH
exec "$root/{loader}" --inhibit-cache --library-path "$root/{libraries}:$root/{libraries}/llama" "$root/usr/bin/llama-server" "$@"
`

// makeStartable writes the script that starts the engine of a tree of unpacked packages, and returns its path in the tree.
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

// findLoader returns the dynamic loader's path in the tree. It lies in the folder named for the architecture, where
// the libraries are.
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

// linkBackends makes the CPU backends, one for each generation of processors, appear beside the loader. The engine looks
// for them beside the running executable, and that is the loader. Without one it starts, and then can't load any model.
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

// syncTree waits until the files are on the disk, because the rename that installs them must not get there first.
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
