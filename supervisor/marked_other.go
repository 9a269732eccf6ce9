//go:build !linux

package supervisor

import "log/slog"

// killMarked does nothing, since the environment of other processes can't be read here. The engine's group or job is killed
// all the same.
func killMarked(string, int, *slog.Logger) []int { return nil }
