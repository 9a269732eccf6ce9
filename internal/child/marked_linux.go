package child

import (
	"bytes"
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

// execPatience is how many milliseconds a process is waited for that has no environment.
const execPatience = 50

// environ returns the environment of a process, given its folder in /proc. While a process executes another program, it seems
// to have none for a moment.
func environ(process string) []byte {
	for range execPatience {
		content, err := os.ReadFile(filepath.Join(process, "environ"))
		if err != nil || len(content) > 0 {
			return content
		}
		if _, err := os.Readlink(filepath.Join(process, "exe")); err != nil {
			break // a zombie, or a thread of the kernel
		}
		time.Sleep(time.Millisecond)
	}
	return nil
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
