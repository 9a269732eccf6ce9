package fakekit

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
	// PollEvery is how often files are polled. They are small and local, and tests wait for them.
	PollEvery = 2 * time.Millisecond
	retries   = 200
	// patience is how long a test waits for an event, also on a busy machine.
	patience = 60 * time.Second
)

// Program is an installed fake, whose processes do what the script S says. Any number of processes can be started from it. Its
// methods may be called from any goroutine, except those that take a testing.TB, which belong to the test's own.
type Program[S any] struct {
	// Path is the program's executable.
	Path string
	// Dir is the folder of the executable, the script and the journal.
	Dir string

	t       testing.TB
	names   []string
	runs    string // what the executable is a link to
	mu      sync.Mutex
	script  S
	journal reading
}

// Install creates a program in a new folder dir. Its executable has the first of the names, and a link has each of the others. A nil
// script means the zero S. Processes still running at the end of the test are killed.
func Install[S any](t testing.TB, dir string, s *S, names ...string) *Program[S] {
	t.Helper()
	p := &Program[S]{Path: filepath.Join(dir, executable(names[0])), Dir: dir, t: t, names: names}
	p.journal.path = filepath.Join(dir, journalFile)
	if s != nil {
		p.script = *s
	}
	for _, folder := range []string{dir, filepath.Join(dir, gatesFolder), filepath.Join(dir, startFolder)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatalf("fakekit: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatalf("fakekit: %v", err)
	}
	if err := writeScript(dir, &p.script); err != nil {
		t.Fatalf("fakekit: %v", err)
	}
	var err error
	if p.runs, err = toRun(names[0]); err != nil {
		t.Fatalf("fakekit: the test binary's path: %v", err)
	}
	for _, name := range names {
		if err := link(p.runs, filepath.Join(dir, executable(name))); err != nil {
			t.Fatalf("fakekit: %v", err)
		}
	}
	t.Cleanup(p.killAll)
	return p
}

// ProgramsVariable is the environment variable with a folder that has fakes as programs of their own, under the first of their names. They
// then stand for the test binary, whose start takes several times as long if it has the race detector. See tools/race.sh.
const ProgramsVariable = "LMCADDY_FAKES"

// toRun returns the executable of a fake: the test binary, unless there is a program.
func toRun(name string) (string, error) {
	if folder := os.Getenv(ProgramsVariable); folder != "" {
		return filepath.EvalSymlinks(filepath.Join(folder, executable(name)))
	}
	return os.Executable()
}

func executable(name string) string {
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
func (p *Program[S]) Set(change func(*S)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.script)
	if err := writeScript(p.Dir, &p.script); err != nil {
		p.t.Errorf("fakekit: %v", err)
	}
}

// Release opens a gate permanently.
func (p *Program[S]) Release(gate string) {
	if err := os.WriteFile(gatePath(p.Dir, gate), nil, 0o600); err != nil {
		p.t.Errorf("fakekit: opening gate %s: %v", gate, err)
	}
}

// killAll kills the processes that have started but not ended according to the journal, by process id, and waits for their
// end: Windows doesn't remove a folder that a process runs from.
func (p *Program[S]) killAll() {
	var killed []int
	for _, pid := range p.started() {
		if !isOurs(pid, p.runs, p.names) {
			continue
		}
		if running, err := os.FindProcess(pid); err == nil && running.Kill() == nil {
			killed = append(killed, pid)
		}
	}
	deadline := time.Now().Add(patience)
	for _, pid := range killed {
		for Alive(pid) && time.Now().Before(deadline) {
			time.Sleep(PollEvery)
		}
	}
	if len(killed) > 0 {
		p.t.Logf("fakekit: killed what was left of %s: %v", p.Path, killed)
	}
}

// started returns the processes that have recorded their start but not their end.
func (p *Program[S]) started() []int {
	events, err := p.journal.all()
	if err != nil {
		p.t.Logf("fakekit: %v", err)
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
