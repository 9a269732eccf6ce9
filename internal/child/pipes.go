package child

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// pipes are a child's standard input and outputs. The outputs aren't exec's, because Cmd.Wait would close them before they are
// read to their end.
type pipes struct {
	stdin          io.WriteCloser
	stdout, stderr *os.File
	theirs         []*os.File
}

// open sets the pipes of a command that isn't started yet.
func (p *pipes) open(cmd *exec.Cmd) error {
	for _, pipe := range []struct {
		ours   **os.File
		theirs *io.Writer
	}{{&p.stdout, &cmd.Stdout}, {&p.stderr, &cmd.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeTheirs()
			p.closeOurs()
			return err
		}
		*pipe.ours, *pipe.theirs = r, w
		p.theirs = append(p.theirs, w)
	}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		p.closeTheirs()
		p.closeOurs()
	}
	return err
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
}

func (p *pipes) closeOurs() {
	for _, f := range []*os.File{p.stdout, p.stderr} {
		_ = f.Close() // nil if it isn't open
	}
}

// readLines calls emit, unless it is nil, for each line of standard error, until the function that it returns is called. That
// function waits for the end, at most outputDelay.
func (p *pipes) readLines(emit func(string)) (drain func()) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		if emit == nil {
			emit = func(string) {}
		}
		w := &LineWriter{Emit: emit}
		_, _ = io.Copy(w, p.stderr)
		w.Flush()
	}()
	return func() {
		timer := time.AfterFunc(outputDelay, func() { _ = p.stderr.Close() })
		<-read
		timer.Stop()
		_ = p.stderr.Close()
	}
}
