package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// startScript execs a program, so the process keeps its ID and is killed as usual. It uses the C library of the packages, through that
// library's loader. It locates the tree by its own path, so the tree may be moved or linked to. The program's PATH contains no programs.
const startScript = `#!/bin/sh
root=$(readlink -f -- "$0") root=${root%/*/*}
PATH=/dev/null
export PATH
exec "$root/{loader}" --inhibit-cache --library-path "$root/{libraries}:$root/{libraries}/llama" "$root/{program}" "$@"
`

// driverScript is the startScript of a program that computes on a GPU. A driver's libraries, and the ones they need, are the
// machine's: they are found where the machine's own programs find them (LD_LIBRARY_PATH, the loader's cache, its default folders)
// and where drivers are put in containers, on WSL and by their own installers. All that is in the tree is found there first, so no
// other C or C++ library is loaded.
const driverScript = `#!/bin/sh
root=$(readlink -f -- "$0") root=${root%/*/*}
PATH=/dev/null
export PATH
drivers=
set -f
IFS=:
for folder in $LD_LIBRARY_PATH; do
	case $folder in /*) drivers=$drivers:$folder ;; esac
done
exec "$root/{loader}" --library-path "$root/{libraries}:$root/{libraries}/llama$drivers:{drivers}" "$root/{program}" "$@"
`

// driverFolders are the folders of driverScript, where {triplet} is the architecture's folder. WSL's is before the distribution's,
// in which a driver for real hardware may be.
var driverFolders = []string{
	"/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", // Kubernetes
	"/run/opengl-driver/lib", // NixOS
	"/usr/lib/{triplet}/nvidia/current", "/usr/lib/{triplet}", "/usr/lib64",
	"/opt/amdgpu/lib/{triplet}", "/opt/amdgpu/lib64",
}

// makeStartable writes the start script of a tree of packages, and returns its path within the tree.
func makeStartable(root, variant string) (string, error) {
	if info, err := os.Stat(filepath.Join(root, "usr/bin/llama-server")); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(errors.New("the packages have no usr/bin/llama-server"), err)
	}
	loaders, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*/ld-linux*.so.*")) // beside the libraries
	older, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*/ld64.so.*"))
	if loaders = append(loaders, older...); len(loaders) == 0 {
		return "", errors.New("the packages have no dynamic loader")
	}
	loader, err := filepath.Rel(root, loaders[0])
	if err != nil {
		return "", err
	}
	libraries := filepath.Dir(loader)
	wanted := []string{variantCPU}
	if variant != variantCPU {
		wanted = append(wanted, variant)
	}
	for _, name := range wanted {
		backends := backendsOf(root, libraries, name)
		if len(backends) == 0 {
			return "", fmt.Errorf("the packages have no %s backend", strings.ToUpper(name))
		}
		if err := linkBeside(root, libraries, backends); err != nil {
			return "", err
		}
	}
	// On a Debian system, a choice of the administrator's is linked.
	openBLAS, _ := filepath.Glob(filepath.Join(root, libraries, "openblas-*", "*.so.*"))
	if err := linkBeside(root, libraries, append(openBLAS, backendsOf(root, libraries, "rpc")...)); err != nil {
		return "", err
	}
	script := filepath.Join("bin", "llama-server")
	if err := writeScript(root, loader, filepath.Join("usr", "bin", "llama-server"), script); err != nil {
		return "", err
	}
	return script, syncTree(root)
}

// backendsOf returns the files of a backend. There is a CPU backend for each generation of processors.
func backendsOf(root, libraries, name string) []string {
	var backends []string
	for _, pattern := range []string{name + ".so", name + "-*.so"} {
		found, _ := filepath.Glob(filepath.Join(root, libraries, "ggml", "backends*", "libggml-"+pattern)) // the pattern is valid
		backends = append(backends, found...)
	}
	return backends
}

// writeScript writes a start script of a program. All paths are within the tree.
func writeScript(root, loader, program, script string) error {
	libraries, text := filepath.Dir(loader), startScript
	for _, gpu := range []string{variantVulkan, variantCUDA, variantHIP} {
		if len(backendsOf(root, libraries, gpu)) > 0 {
			text = strings.ReplaceAll(driverScript, "{drivers}", strings.Join(driverFolders, ":"))
		}
	}
	text = strings.NewReplacer(
		"{loader}", loader, "{libraries}", libraries, "{program}", program, "{triplet}", filepath.Base(libraries),
	).Replace(text)
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(script)), 0o750); err != nil {
		return fmt.Errorf("writing the start script: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(root, script), 0o755, atomicfile.Text(text)); err != nil {
		return fmt.Errorf("writing the start script: %w", err)
	}
	return nil
}

// linkBeside links backends, or libraries that they need, into the folder of the loader. The engine looks for backends in the folder of the
// running executable, which is the loader. Without them the engine starts, but can't load a model, or not onto a GPU.
func linkBeside(root, libraries string, files []string) error {
	for _, file := range files {
		link := filepath.Join(root, libraries, filepath.Base(file))
		target, err := filepath.Rel(filepath.Dir(link), file)
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
