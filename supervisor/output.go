package supervisor

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxLine is how much of a line is kept. Engines can write lines of any length.
	maxLine = 64 << 10
	// ringLines is how many lines of an engine's output are kept.
	ringLines = 200
	// outputDelay bounds the wait for the end of the output of a process that has ended: another may hold it open.
	outputDelay = 2 * time.Second
)

// outputs are what an engine writes to. They are our own pipes, not exec's: that would wait for their end before it tells of
// the process's.
type outputs struct {
	theirs, ours []*os.File
	readers      sync.WaitGroup
}

// openOutputs gives a command that isn't started yet its outputs.
func openOutputs(cmd *exec.Cmd) (*outputs, error) {
	o := &outputs{}
	for _, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			o.close()
			return nil, fmt.Errorf("the engine's output: %w", err)
		}
		o.ours, o.theirs = append(o.ours, r), append(o.theirs, w)
		*to = w
	}
	return o, nil
}

// read begins to read the outputs of a command that was started: emit gets the lines, heard is told of anything.
func (o *outputs) read(emit func(string), heard func()) {
	closeAll(o.theirs)
	for _, r := range o.ours {
		o.readers.Go(func() {
			w := &lineWriter{emit: emit, heard: heard}
			_, _ = io.Copy(w, r)
			w.flush()
		})
	}
}

// drain waits for the end of the outputs, but not for ever.
func (o *outputs) drain() {
	closed := make(chan struct{})
	timer := time.AfterFunc(outputDelay, func() {
		o.close()
		close(closed)
	})
	o.readers.Wait()
	if !timer.Stop() {
		<-closed // a reader may end before its file is closed
	}
}

// close does no harm to what is closed already.
func (o *outputs) close() {
	closeAll(o.theirs)
	closeAll(o.ours)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// lineWriter cuts what is written to it into lines. A line's part beyond maxLine is dropped, so that the engine, which
// blocks on a full pipe, is always drained.
type lineWriter struct {
	emit  func(string)
	heard func()
	rest  []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	w.heard()
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.add(p)
			return n, nil
		}
		w.add(p[:i])
		w.flush()
		p = p[i+1:]
	}
}

func (w *lineWriter) add(p []byte) {
	w.rest = append(w.rest, p[:min(len(p), maxLine-len(w.rest))]...)
}

func (w *lineWriter) flush() {
	if line := strings.TrimRight(string(w.rest), "\r"); line != "" {
		w.emit(strings.ToValidUTF8(line, "\uFFFD"))
	}
	w.rest = w.rest[:0]
}

// logRing keeps the last lines of an engine's output.
type logRing struct {
	mu    sync.Mutex
	lines []string
	next  int
}

func (r *logRing) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < ringLines {
		r.lines = append(r.lines, line)
		return
	}
	r.lines[r.next] = line
	r.next = (r.next + 1) % ringLines
}

// contains tells whether any line matches.
func (r *logRing) contains(pattern *regexp.Regexp) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, pattern.MatchString)
}

// last is the newest lines, as many as n, in one; empty if there are none.
func (r *logRing) last(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for i := max(0, len(r.lines)-n); i < len(r.lines); i++ {
		words = append(words, strings.TrimSpace(r.lines[(r.next+i)%len(r.lines)]))
	}
	return strings.Join(words, " | ")
}
