package supervisor

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killMarked kills the processes whose mark is run, or begins so if that ends in a slash. It tells which.
func killMarked(run string, log *slog.Logger) (killed []int) {
	needle := []byte(markVariable + "=" + run)
	isPrefix := run != "" && run[len(run)-1] == '/'
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !hasVariable(environ, needle, isPrefix) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if log != nil {
			log.Warn("ending a process that an engine left behind", "pid", pid)
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
