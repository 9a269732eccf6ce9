//go:build !linux

package supervisor

import "log/slog"

// killMarked can't be done where the environment of other processes isn't to be read. An engine's group, or its job, is
// ended all the same.
func killMarked(string, int, *slog.Logger) []int { return nil }
