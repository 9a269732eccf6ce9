//go:build !linux

package child

import (
	"log/slog"
	"time"
)

// killMarked does nothing, since the environment of other processes can't be read here. The child's group or job is killed all the same.
func (Kind) killMarked(string, int, *slog.Logger) []int { return nil }

// isMainThread matters only where threads are sandboxed.
func isMainThread() bool { return false }

func waited(int) time.Duration { return 0 }
