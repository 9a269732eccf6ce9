//go:build unix && !linux

package fakeengine

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Alive reports whether a process exists and is no zombie.
func Alive(pid int) bool {
	state := ps(pid, "stat=")
	return state != "" && !strings.HasPrefix(state, "Z")
}

// isOurs reports whether a live process was started as this engine: process ids are used again.
func isOurs(pid int) bool {
	return pid != os.Getpid() && Alive(pid) && strings.Contains(ps(pid, "command="), name)
}

func ps(pid int, column string) string {
	out, err := exec.Command("ps", "-o", column, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
