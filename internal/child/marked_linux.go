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

// changePatience bounds how long a process that executes another program or is exiting is waited for. The system frees some gigabytes of
// memory a second.
const changePatience = time.Second

// environ returns the environment of a process, given its folder in /proc. A process that executes another program seems to have
// none for a moment, and so does one that is exiting: both are waited for.
func environ(process string) []byte {
	isSettled := false
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		content, err := os.ReadFile(filepath.Join(process, "environ"))
		if len(content) > 0 || (err != nil && !errors.Is(err, syscall.ESRCH)) {
			return content
		}
		wasSettled := isSettled // for a moment the system has the start of an environment where its end is, too
		isSettled = !isChanging(process)
		if isSettled && wasSettled || time.Since(begin) > changePatience {
			return nil
		}
	}
}

// isChanging reports whether a process without an environment may have one soon, or is exiting and isn't a zombie yet: it may still hold
// files and ports. See proc(5), /proc/pid/stat.
func isChanging(process string) bool {
	const (
		state, flags, envStart, envEnd = 0, 6, 47, 48 // among the fields after the name
		exiting, kernelThread          = 0x4, 0x200000
	)
	content, _ := os.ReadFile(filepath.Join(process, "stat"))
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) <= envEnd || fields[state][0] == 'Z' || fields[state][0] == 'X' {
		return false
	}
	are, err := strconv.ParseUint(string(fields[flags]), 10, 64)
	switch {
	case err != nil || are&kernelThread != 0:
		return false
	case are&exiting != 0:
		return true
	default: // the start is 0 until the environment is there
		return string(fields[envStart]) == "0" || !bytes.Equal(fields[envStart], fields[envEnd])
	}
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
