package fakekit

import (
	"fmt"
	"os"
	"strings"
)

// Alive reports whether a process exists and is no zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The command's name is in parentheses and may hold any character; the state follows.
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	state := strings.TrimSpace(rest)
	return state != "" && state[0] != 'Z' && state[0] != 'X'
}

// isOurs reports whether a live process runs an executable: process ids are used again.
func isOurs(pid int, runs string, _ []string) bool {
	if pid == os.Getpid() || !Alive(pid) {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.TrimSuffix(exe, " (deleted)") == runs
}
