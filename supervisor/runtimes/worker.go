package runtimes

import (
	"os"
	"path/filepath"
	"runtime"
)

// workerName is the executable of llama.cpp that computes for a llama-server on another machine. Older releases call it rpc-server.
const workerName = "ggml-rpc-server"

// WorkerOf returns the worker that belongs to a llama-server: the executable that computes for a llama-server on another machine. It is in
// the same folder, or where Debian's packages have it. It is empty if there is none.
func WorkerOf(server string) string {
	folders := []string{filepath.Dir(server)}
	if real, err := filepath.EvalSymlinks(server); err == nil {
		folders = append(folders, filepath.Dir(real))
	}
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for _, folder := range folders {
		system, _ := filepath.Glob(filepath.Join(folder, "..", "libexec", "*", "llama", "bin", workerName)) // the pattern is valid unless the folder's name has brackets
		for _, path := range append([]string{filepath.Join(folder, workerName+suffix), filepath.Join(folder, "rpc-server"+suffix)}, system...) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && checkExecutable(path) == nil {
				return path
			}
		}
	}
	return ""
}
