package fakekit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ExitBroken is the status of a child that can't do its work, which is a fault of the test.
const ExitBroken = 70

// Child is a process started from a [Program], as it sees itself.
type Child struct {
	// Self is the executable as installed, Dir its folder.
	Self, Dir string
	// Name is the executable's, without .exe.
	Name string
	// Argv has the arguments, without the executable.
	Argv []string
	// Start counts the program's starts, from 1. CountStart sets it.
	Start int

	journal *journal
	ending  sync.Mutex // held for good by whoever ends the process
}

// ThisChild returns what the process is a child of, if it was started under one of the names, and nil otherwise. It ends a process that has
// such a name but was not installed, and a grandchild when its time is over.
func ThisChild(names ...string) *Child {
	base := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if !slices.Contains(names, base) {
		return nil
	}
	self, err := locate(os.Args[0])
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakekit: %v\n", err)
		syscall.Exit(ExitBroken)
	}
	c := &Child{Self: self, Dir: filepath.Dir(self), Name: base, Argv: os.Args[1:]}
	go endWithTest(c.Dir)
	if len(c.Argv) > 0 && c.Argv[0] == grandchildArg {
		time.Sleep(grandchildLife)
		syscall.Exit(0)
	}
	if c.journal, err = openJournal(c.Dir); err != nil {
		fmt.Fprintf(os.Stderr, "fakekit: %v\n", err)
		syscall.Exit(ExitBroken)
	}
	return c
}

// locate is the installed executable that a process was started as: argv[0], or what it is a link to, with a script beside it.
func locate(argv0 string) (string, error) {
	path := argv0
	if !strings.ContainsRune(path, filepath.Separator) {
		if found, err := exec.LookPath(path); err == nil {
			path = found
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the installed program: %w", err)
	}
	for range 16 {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), scriptFile)); err == nil {
			return path, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("no %s beside %s: start it by the path that Install returned", scriptFile, argv0)
}

// endWithTest ends a process that has outlived its test: the folder is gone, or, where the test binary panicked, that binary.
func endWithTest(dir string) {
	owner := 0
	if text, err := os.ReadFile(filepath.Join(dir, ownerFile)); err == nil {
		owner, _ = strconv.Atoi(string(text))
	}
	for {
		time.Sleep(5 * time.Second)
		if _, err := os.Stat(dir); os.IsNotExist(err) || !Alive(owner) {
			syscall.Exit(ExitBroken)
		}
	}
}

// CountStart numbers this start among those of all of the program's processes: the process that creates a numbered file first gets the
// number.
func (c *Child) CountStart() error {
	for n := 1; ; n++ {
		f, err := os.OpenFile(filepath.Join(c.Dir, startFolder, strconv.Itoa(n)), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			c.Start = n
			return f.Close()
		}
		if !os.IsExist(err) {
			return fmt.Errorf("counting the start: %w", err)
		}
	}
}

// Tell writes an event to the journal.
func (c *Child) Tell(e Event) { c.journal.tell(e) }

// TellStarted records how the process was started, once its port is known. The values of variables that begin with one of the prefixes are
// recorded, too.
func (c *Child) TellStarted(port int, prefixes ...string) {
	e := Event{Kind: Started, Start: c.Start, Parent: os.Getppid(), Argv: c.Argv, Env: map[string]string{}, Port: port}
	for _, pair := range os.Environ() {
		key, value, _ := strings.Cut(pair, "=")
		e.EnvNames = append(e.EnvNames, key)
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			e.Env[key] = value
		}
	}
	if dir, err := os.Getwd(); err == nil {
		e.Dir = dir
	}
	c.Tell(e)
}

// Exit ends the process by the system call, because os.Exit in a test binary takes a second with the race detector.
func (c *Child) Exit(code int, reason string) {
	c.ending.Lock()
	c.Tell(Event{Kind: Exit, Reason: reason, Code: code})
	syscall.Exit(code)
}

// Die ends the process as the script says, by a signal where the system has them.
func (c *Child) Die(d Death, model, reason string) {
	c.ending.Lock()
	for _, line := range d.Lines {
		_, _ = os.Stderr.WriteString(strings.ReplaceAll(line, "{model}", model) + "\n")
	}
	if d.Code != 0 {
		c.Tell(Event{Kind: Exit, Reason: reason, Code: d.Code})
		syscall.Exit(d.Code)
	}
	sig := syscall.SIGKILL
	if d.Signal != 0 {
		sig = syscall.Signal(d.Signal)
	}
	c.Tell(Event{Kind: Exit, Reason: reason, Signal: int(sig)})
	killSelf(sig)
	select {}
}
