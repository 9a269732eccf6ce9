package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// standardFolders are those in which a system and its package managers put programs.
var standardFolders = []string{
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/homebrew/bin",
	"/snap/bin",
}

// started are the programs that the server starts by their names: engines, Python, what tells of GPUs, and what most MCP servers of
// mcp.json are started with. A shell is what those may need.
var started = []string{
	"sh", "llama-server", "mlx_lm.server", "python3", "nvidia-smi", "node", "npx", "uv", "uvx", "bun", "bunx", "deno", "docker", "podman",
}

// searchPath returns what a service keeps of a user's search path: the standard folders, and those in which there is a program
// that the server may start. All others are of no use to it, and each is a place from which a program could be started by mistake.
// So are folders that aren't absolute, and those in which everybody can put programs.
func searchPath(path string, programs []string) string {
	programs = slices.Concat(started, programs)
	session := os.Getenv("XDG_RUNTIME_DIR")
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if isBelow(dir, session) { // where managers of versions link to the one of this terminal
			dir, _ = filepath.EvalSymlinks(dir)
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 || !filepath.IsAbs(dir) || isBelow(dir, session) ||
			strings.ContainsFunc(dir, unicode.IsControl) || slices.Contains(kept, dir) {
			continue
		}
		isUseful := func(program string) bool {
			info, err := os.Stat(filepath.Join(dir, program))
			return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
		}
		if slices.Contains(standardFolders, filepath.Clean(dir)) || slices.ContainsFunc(programs, isUseful) {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// isBelow reports whether a path is in a folder, which may be "".
func isBelow(path, folder string) bool {
	return folder != "" && strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
