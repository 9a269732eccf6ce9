package child

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// killMarked kills the processes with ids greater than above whose mark is run, or starts with run if that ends in a slash,
// and returns their ids.
func (k Kind) killMarked(run string, above int, log *slog.Logger) (killed []int) {
	needle := []byte(k.Variable + "=" + run)
	isPrefix := run != "" && run[len(run)-1] == '/'
	processes, _ := os.ReadDir("/proc")
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil || pid <= above || pid == os.Getpid() {
			continue
		}
		if !hasVariable(environ(filepath.Join("/proc", process.Name())), needle, isPrefix) {
			continue
		}
		if log != nil {
			log.Warn("ending a process that "+k.Noun+" left behind", "pid", pid)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed = append(killed, pid)
		}
	}
	return killed
}

const (
	// execPatience bounds how long a process that has no environment is waited for.
	execPatience = 50 * time.Millisecond
	// exitPatience bounds how long a process that is exiting is waited for: the system frees some gigabytes of memory a second.
	exitPatience = time.Second
)

// environ returns the environment of a process, given its folder in /proc. A process that executes another program seems to have
// none for a moment. So does a process that is being killed: it is waited for.
func environ(process string) []byte {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		content, err := os.ReadFile(filepath.Join(process, "environ"))
		if len(content) > 0 || (err != nil && !errors.Is(err, syscall.ESRCH)) {
			return content
		}
		patience := execPatience
		if _, err := os.Readlink(filepath.Join(process, "exe")); err != nil {
			if !isExiting(process) {
				return nil // a zombie, or a thread of the kernel
			}
			patience = exitPatience
		}
		if time.Since(begin) > patience {
			return nil
		}
	}
}

// isExiting reports whether a process has begun to exit and isn't a zombie yet: it may still hold files and ports. See proc(5),
// /proc/pid/stat.
func isExiting(process string) bool {
	const flagExiting = 0x4 // PF_EXITING of the kernel's sched.h
	content, _ := os.ReadFile(filepath.Join(process, "stat"))
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:]) // state, ppid, pgrp, session, tty_nr, tpgid, flags
	if len(fields) < 7 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return false
	}
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	return err == nil && flags&flagExiting != 0
}

func hasVariable(environ, needle []byte, isPrefix bool) bool {
	for len(environ) > 0 {
		variable, rest, _ := bytes.Cut(environ, []byte{0})
		if bytes.Equal(variable, needle) || (isPrefix && bytes.HasPrefix(variable, needle)) {
			return true
		}
		environ = rest
	}
	return false
}
