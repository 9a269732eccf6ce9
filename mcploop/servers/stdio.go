package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/ring"
)

const (
	lastLines  = 8        // how many lines of a server's standard error are in the error of its end
	maxWaiting = 16 << 20 // how many bytes may wait for a server that doesn't read
)

type (
	// startError is a program that didn't come up.
	startError struct{ err error }
	// endedError is a program that ended, with the last that it wrote on its standard error.
	endedError struct {
		err   error
		lines []string
	}
)

func (e *startError) Error() string { return "it could not be started: " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }
func (e *endedError) Unwrap() error { return e.err }

func (e *endedError) Error() string {
	text := "it ended"
	if e.err != nil {
		text = fmt.Sprintf("it ended: %v", e.err)
	}
	if len(e.lines) > 0 {
		text += "; its last words: " + strings.Join(e.lines, " | ")
	}
	return text
}

func (c *connector) overStdio(ctx context.Context, t target) (*link, error) {
	startup := c.startup
	if isFetcher(t.Command) {
		startup *= fetchTimeout
	}
	limit, cancel := context.WithTimeoutCause(ctx, startup, &timeoutError{startup})
	defer cancel()
	log := c.log.With("server", t.Label)
	words := ring.New[string](lastLines, lastLines<<10)
	said := child.LineLog{Log: log, Message: "an MCP server says", Noun: "MCP server"}
	process, err := child.Start(child.Options{
		Path: t.Command, Args: t.Args, Env: environ(t.Env), Dir: t.Dir, Journal: c.journal, Log: log,
		Line: func(line string) {
			last := clip(line)
			words.Add(last, len(last))
			said.Write(ctx, slog.LevelInfo, line)
		},
	})
	if err != nil {
		return nil, &startError{err}
	}
	l := newLink(ctx, log, c.timeout)
	input := newPatientWriter(process.Stdin, func() { l.lose(errStarve) })
	l.patience = c.patience
	l.shut = func() {
		process.Stop()
		<-input.done
	}
	output := newLineReader(process.Stdout, l.budget, func(err error) {
		if !errors.Is(err, errFlood) {
			err = endOf(process, words)
		}
		l.lose(err)
	})
	tap := stdioTap{transport.NewIO(output, input, io.NopCloser(strings.NewReader("")))}
	l.use(client.NewClient(tap, withHandshake))
	err = c.begin(limit, l)
	if is[*refusedError](err) {
		// It doesn't know the handshake, so it may speak the newest protocol.
		l.use(client.NewClient(tap))
		err = c.begin(limit, l)
	}
	if err != nil {
		l.close()
		return nil, &startError{err}
	}
	return l, nil
}

var fetchers = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "uv", "uvx", "pipx", "docker", "podman"}

func isFetcher(command string) bool {
	name := strings.ToLower(filepath.Base(command))
	return slices.Contains(fetchers, strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd"))
}

// endOf says how a program ended that has closed its output. Usually it exits at once.
func endOf(process *child.Child, words *ring.Ring[string]) error {
	select {
	case <-process.Done():
		said, _, _ := words.From(0, lastLines)
		return &endedError{process.Err(), said}
	case <-time.After(time.Second):
		said, _, _ := words.From(0, lastLines)
		return &endedError{errors.New("it closed its output"), said}
	}
}

// passed are the variables of our environment that a server gets. The others may hold secrets.
var passed = map[bool][]string{
	false: {"HOME", "USER", "LOGNAME", "PATH", "SHELL", "TERM", "LANG", "TMPDIR", "TZ"},
	true: {
		"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP", "USERPROFILE", "USERNAME", "USERDOMAIN",
		"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
		"COMMONPROGRAMFILES", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS",
	},
}

// environ returns a server's environment. The last of two variables of one name counts.
func environ(own map[string]string) []string {
	isWindows := runtime.GOOS == "windows"
	var all []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if isWindows {
			name = strings.ToUpper(name)
		}
		if slices.Contains(passed[isWindows], name) || strings.HasPrefix(name, "LC_") {
			all = append(all, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		all = append(all, name+"="+own[name])
	}
	return all
}

// patientWriter writes to a program without ever making its caller wait: the library writes with a lock held and doesn't look at
// contexts meanwhile, so a program that doesn't read would stop everybody who uses it.
type patientWriter struct {
	to     io.Writer
	starve func() // is called when too much waits
	done   chan struct{}

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []byte
	closed  bool
}

func newPatientWriter(to io.Writer, starve func()) *patientWriter {
	w := &patientWriter{to: to, starve: starve, done: make(chan struct{})}
	w.wake = sync.NewCond(&w.mu)
	go w.run()
	return w
}

// Write implements [io.Writer]. It never fails: that the program is gone is noticed at its output.
func (w *patientWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
	case len(w.waiting)+len(p) > maxWaiting:
		w.starve()
	default:
		w.waiting = append(w.waiting, p...)
		w.wake.Signal()
	}
	return len(p), nil
}

// Close gives up what waits. It doesn't close the program's input, which [child.Child.Stop] does.
func (w *patientWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.wake.Signal()
	return nil
}

func (w *patientWriter) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		for len(w.waiting) == 0 && !w.closed {
			w.wake.Wait()
		}
		next := w.waiting
		w.waiting = nil
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return
		}
		if _, err := w.to.Write(next); err != nil {
			_ = w.Close()
		}
	}
}
