//go:build unix && !linux

package fakekit

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Alive reports whether a process exists and is no zombie.
func Alive(pid int) bool {
	state := ps(pid, "stat=")
	return state != "" && !strings.HasPrefix(state, "Z")
}

// isOurs reports whether a live process was started under one of the names: process ids are used again.
func isOurs(pid int, _ string, names []string) bool {
	if pid == os.Getpid() || !Alive(pid) {
		return false
	}
	command := ps(pid, "command=")
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(command, name) })
}

func ps(pid int, column string) string {
	out, err := exec.Command("ps", "-o", column, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
