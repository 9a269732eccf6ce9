package fakeengine

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	name = "llama-server"
	// pollEvery is how often files are polled. They are small and local, and tests wait for them.
	pollEvery = 2 * time.Millisecond
	retries   = 200
	// patience is how long a test waits for an event, also on a busy machine.
	patience = 60 * time.Second
)

// Engine is an installed fake engine. Any number of processes can be started from it. Its methods may be called from any goroutine,
// but for those that take a testing.TB, which belong to the test's own.
type Engine struct {
	// Path is the engine's executable.
	Path string
	// Dir is the folder of the executable, the script and the journal.
	Dir string

	t       testing.TB
	mu      sync.Mutex
	script  Script
	journal reading
}

// Install creates an engine in a temporary folder. A nil script means the zero Script. Processes still running at the end
// of the test are killed.
func Install(t testing.TB, s *Script) *Engine {
	t.Helper()
	dir := t.TempDir()
	e := &Engine{Path: filepath.Join(dir, executable()), Dir: dir, t: t}
	e.journal.path = filepath.Join(dir, journalFile)
	if s != nil {
		e.script = *s
	}
	for _, folder := range []string{gatesFolder, startFolder} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatalf("fakeengine: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatalf("fakeengine: %v", err)
	}
	if err := writeScript(dir, &e.script); err != nil {
		t.Fatalf("fakeengine: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("fakeengine: the test binary's path: %v", err)
	}
	if err := link(self, e.Path); err != nil {
		t.Fatalf("fakeengine: %v", err)
	}
	t.Cleanup(e.killAll)
	return e
}

func executable() string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// link creates a symbolic link or, where that needs special rights (Windows), a hard link or a copy.
func link(from, to string) error {
	if runtime.GOOS != "windows" && os.Symlink(from, to) == nil {
		return nil
	}
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copying the test binary: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("copying the test binary: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return fmt.Errorf("copying the test binary: %w", err)
	}
	return out.Close()
}

// Set changes the script of running and future children atomically. change must not retain its argument.
func (e *Engine) Set(change func(*Script)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.script)
	if err := writeScript(e.Dir, &e.script); err != nil {
		e.t.Errorf("fakeengine: %v", err)
	}
}

// Release opens a gate permanently.
func (e *Engine) Release(gate string) {
	if err := os.WriteFile(gatePath(e.Dir, gate), nil, 0o600); err != nil {
		e.t.Errorf("fakeengine: opening gate %s: %v", gate, err)
	}
}

func gatePath(dir, gate string) string { return filepath.Join(dir, gatesFolder, gate) }

// killAll kills the processes that have started but not ended according to the journal, by process id, and waits for their
// end: Windows doesn't remove a folder that a process runs from.
func (e *Engine) killAll() {
	var killed []int
	for _, pid := range e.started() {
		if !isOurs(pid) {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			killed = append(killed, pid)
		}
	}
	deadline := time.Now().Add(patience)
	for _, pid := range killed {
		for Alive(pid) && time.Now().Before(deadline) {
			time.Sleep(pollEvery)
		}
	}
	if len(killed) > 0 {
		e.t.Logf("fakeengine: killed what was left of %s: %v", e.Path, killed)
	}
}

// started returns the processes that have recorded their start but not their end.
func (e *Engine) started() []int {
	events, err := e.journal.all()
	if err != nil {
		e.t.Logf("fakeengine: %v", err)
	}
	var pids []int
	ended := make(map[int]bool)
	for _, ev := range events {
		switch ev.Kind {
		case Started, Forked:
			pids = append(pids, ev.PID)
		case Exit:
			ended[ev.PID] = true
		}
	}
	left := pids[:0]
	for _, pid := range pids {
		if !ended[pid] {
			left = append(left, pid)
		}
	}
	return left
}
