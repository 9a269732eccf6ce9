package process

import (
	"os"
)

// wasKilled returns false: Windows doesn't kill processes that take too much memory.
func wasKilled(error) bool { return false }

// wasEndedByOthers returns false: the exit code doesn't tell.
func wasEndedByOthers(error) bool { return false }

// isPrivate reports whether path is a folder. On Windows, temporary folders are private to the user.
func isPrivate(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
