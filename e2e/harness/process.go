package harness

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a living process of the machine; a zombie isn't one.
type Process struct {
	PID  int
	Args []string
}

// Engines returns the processes that run a model of this home, that is, whose arguments name its file or its folder, ordered by
// id. An engine's start script may run subshells, which are included for a moment.
func (h *Home) Engines() []Process {
	models := filepath.Join(h.Dir, "models") + string(filepath.Separator)
	return slices.DeleteFunc(processesWith(models), func(p Process) bool {
		for i, arg := range p.Args {
			if strings.HasPrefix(arg, models) && (strings.HasSuffix(arg, ".gguf") || i > 0 && p.Args[i-1] == "--model") {
				return false
			}
		}
		return true
	})
}

// Engine returns the only engine of this home. Any other number of engines fails the test.
func (h *Home) Engine() Process {
	h.T.Helper()
	engines := h.Engines()
	if len(engines) != 1 {
		h.T.Fatalf("%d engines run, where one should: %v", len(engines), engines)
	}
	return engines[0]
}

// WaitNoEngine waits until no engine of this home is left.
func (h *Home) WaitNoEngine(within time.Duration) {
	h.T.Helper()
	Eventually(h.T, within, "no engine is left", func() bool { return len(h.Engines()) == 0 })
}

// processesWith returns the processes with a text in one of their arguments.
func processesWith(text string) []Process {
	return processesWhere(func(folder string) bool {
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		return err == nil && bytes.Contains(line, []byte(text))
	})
}

// processesWhere returns the processes for whose folder in /proc a condition holds, ordered by id. What the condition reads
// may be gone, empty, as of a zombie, or another user's.
func processesWhere(holds func(folder string) bool) []Process {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []Process
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || !holds(folder) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		p := Process{pid, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")}
		if p.Alive() {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Process) int { return a.PID - b.PID })
	return found
}

// stat reads the fields of /proc/<pid>/stat after the process's name, which may contain spaces: the first is its state.
func (p Process) stat() ([]string, error) { return stat(fmt.Sprintf("/proc/%d/stat", p.PID)) }

func stat(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, after, ok := strings.Cut(string(content[bytes.LastIndexByte(content, ')')+1:]), " ")
	if !ok {
		return nil, fmt.Errorf("%s: the state can't be read", path)
	}
	return strings.Fields(after), nil
}

// Parent is the id of the process's parent; 0 when the process has ended.
func (p Process) Parent() int {
	fields, err := p.stat()
	if err != nil || len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// Alive reports whether the process is running. A zombie isn't.
func (p Process) Alive() bool {
	fields, err := p.stat()
	return err == nil && fields[0] != "Z" && fields[0] != "X"
}

// family returns the process and those that it has started, and so on.
func (p Process) family() []Process {
	all := []Process{p}
	for i := 0; i < len(all); i++ {
		all = append(all, processesWhere(func(folder string) bool {
			pid, err := strconv.Atoi(filepath.Base(folder))
			return err == nil && Process{PID: pid}.Parent() == all[i].PID
		})...)
	}
	return all
}

// CPU is the CPU time that the process has used, and those that it has started: an engine may be a script.
func (p Process) CPU() (all time.Duration) {
	for _, one := range p.family() {
		all += one.ownCPU()
	}
	return all
}

func (p Process) ownCPU() time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all of Go's platforms
	fields, err := p.stat()
	if err != nil || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// Pause suspends the process and those that it has started, so that a test can do something while an answer is certainly
// unfinished.
func (p Process) Pause(t testing.TB) {
	t.Helper()
	for _, one := range p.family() {
		one.pause(t)
	}
}

// pause suspends the process, and waits until each of its threads has stopped.
func (p Process) pause(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	Eventually(t, Patience, fmt.Sprintf("process %d is paused", p.PID), func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID))
		return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(path string) bool {
			fields, err := stat(path)
			return err != nil || fields[0] != "T"
		})
	})
}

// Resume continues a paused process and those that it has started.
func (p Process) Resume(t testing.TB) {
	t.Helper()
	for _, one := range p.family() {
		one.signal(t, syscall.SIGCONT)
	}
}

// Kill ends the process at once.
func (p Process) Kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
}

// Crash has the process end as by a fault of its own.
func (p Process) Crash(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGSEGV)
}

func (p Process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID, sig); err != nil {
		t.Fatalf("signal %v to process %d: %v", sig, p.PID, err)
	}
}

func (p Process) kill() { _ = syscall.Kill(p.PID, syscall.SIGKILL) }

// Listens reports whether the engine accepts connections.
func (p Process) Listens() bool {
	host := slices.Index(p.Args, "--host")
	port := slices.Index(p.Args, "--port")
	if host < 0 || host+1 >= len(p.Args) {
		return false
	}
	network, address := "tcp", ""
	if strings.HasSuffix(p.Args[host+1], ".sock") {
		network, address = "unix", p.Args[host+1]
	} else if port >= 0 && port+1 < len(p.Args) {
		address = net.JoinHostPort(p.Args[host+1], p.Args[port+1])
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
