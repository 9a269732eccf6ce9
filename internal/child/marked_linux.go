package child

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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
		environ, err := os.ReadFile(filepath.Join("/proc", process.Name(), "environ"))
		if err != nil || !hasVariable(environ, needle, isPrefix) {
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
