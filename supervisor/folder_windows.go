package supervisor

import "os"

// isPrivate tells whether path is a folder. A temporary folder is its user's alone here.
func isPrivate(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
