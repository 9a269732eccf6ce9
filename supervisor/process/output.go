package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

const (
	// ringLines is how many lines of an engine's output are kept.
	ringLines = 200
	// outputDelay bounds the wait for the end of an exited process's output: another process may hold it open.
	outputDelay = 2 * time.Second
)

// outputs are the pipes that an engine writes to. They aren't exec's, because Cmd.Wait would wait for their end before it returns.
type outputs struct {
	stdin        io.WriteCloser
	theirs, ours []*os.File
	readers      sync.WaitGroup
}

// openPipes sets the outputs of a command that isn't started yet, and its input. Most engines exit when their input closes, which is when
// this server ends at the latest.
func openPipes(cmd *exec.Cmd) (*outputs, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	o := &outputs{stdin: stdin}
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

// read starts to read the outputs of a started command. It calls emit for each line, and heard for each write.
func (o *outputs) read(emit func(string), heard func()) {
	closeAll(o.theirs)
	for _, r := range o.ours {
		o.readers.Go(func() {
			w := &child.LineWriter{Emit: emit, Heard: heard}
			_, _ = io.Copy(w, r)
			w.Flush()
		})
	}
}

func (o *outputs) drain() {
	closed := make(chan struct{})
	timer := time.AfterFunc(outputDelay, func() {
		closeAll(o.ours)
		close(closed)
	})
	o.readers.Wait()
	if !timer.Stop() {
		<-closed // a reader may return before its file is closed
	}
}

// close may be called several times.
func (o *outputs) close() {
	_ = o.stdin.Close()
	closeAll(o.theirs)
	closeAll(o.ours)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// logRing holds the last lines of an engine's output.
type logRing struct {
	mu    sync.Mutex
	lines []string
}

func (r *logRing) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.lines = r.lines[max(0, len(r.lines)-ringLines):]
}

func (r *logRing) contains(pattern *regexp.Regexp) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, pattern.MatchString)
}

// last returns the newest n lines joined into one; empty if there are none.
func (r *logRing) last(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, line := range r.lines[max(0, len(r.lines)-n):] {
		words = append(words, strings.TrimSpace(line))
	}
	return strings.Join(words, " | ")
}
