//go:build unix

package backup

import "golang.org/x/sys/unix"

func mayEmpty(folder string) bool { return unix.Access(folder, unix.R_OK|unix.W_OK|unix.X_OK) == nil }
