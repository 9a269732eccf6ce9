package supervisor

import "os"

// isPrivate reports whether path is a folder. On Windows, temporary folders are private to the user.
func isPrivate(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
