package faults

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentMemory is the resident memory of a process, in MiB; 0 if it has ended.
func residentMemory(r *round, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := residentLine.FindSubmatch(status)
	if err != nil || found == nil {
		r.Errorf("process %d has no resident memory", pid)
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return float64(kilobytes) / 1024
}

// memoryWatch is the resident memory of a server, in MiB, while something goes on.
type memoryWatch struct {
	before float64
	done   chan struct{}
	most   chan float64
}

// watchMemory begins to watch. The caller must ask for the peak.
func (r *round) watchMemory(s *harness.Server) *memoryWatch {
	w := &memoryWatch{before: residentMemory(r, s.PID), done: make(chan struct{}), most: make(chan float64, 1)}
	go func() {
		for most := w.before; ; {
			select {
			case <-w.done:
				w.most <- most
				return
			case <-time.After(20 * time.Millisecond):
				most = max(most, residentMemory(r, s.PID))
			}
		}
	}()
	return w
}

// peak ends the watch, and returns the largest value.
func (w *memoryWatch) peak() float64 {
	close(w.done)
	return <-w.most
}
