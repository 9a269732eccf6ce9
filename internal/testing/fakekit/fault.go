package fakekit

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Death ends a process. The zero value kills it with SIGKILL, unannounced.
type Death struct {
	// Lines are written to standard error first; {model} stands for the model's path in them.
	Lines []string
	// Code is the exit status, if not 0.
	Code int
	// Signal, where Code is 0, is the signal to die of, such as 6 or 11. Default 9. On Windows the status is 128+Signal.
	Signal int
}

// Abort is the Signal of a process that aborts, SIGABRT.
const Abort = 6

// When a [Noise] is made.
const (
	AtStart   = "start"   // before the load
	AtReady   = "ready"   // after readiness was told
	AtRequest = "request" // at each generating request, before its answer
)

// Noise is rubbish on an output stream. It blocks when nobody drains the pipe, as a real engine does.
type Noise struct {
	// When is AtStart (default), AtReady or AtRequest.
	When string
	// Stdout writes to standard output, which otherwise holds only the child protocol. Default: standard error.
	Stdout bool
	// Text is written as it is, with no newline added, before the rubbish.
	Text string
	// Bytes is how much rubbish is written, newlines included.
	Bytes int
	// LineBytes is the length of its lines. Default: one line of all Bytes.
	LineBytes int
	// Every, if not 0, makes the noise again and again, so often, while the process does other things.
	Every time.Duration
}

// Grandchild is a process that sleeps until killed, and that outlives the engine unless it is killed too.
type Grandchild struct {
	// Setsid puts it in a session and process group of its own (on Windows: a process group), out of a group kill's reach.
	Setsid bool
	// HoldPipes lets it keep the engine's standard output and error open. Default: it has /dev/null.
	HoldPipes bool
}

// MakeNoise makes the noises that are made at that time.
func MakeNoise(noises []Noise, when string) {
	for i := range noises {
		if n := &noises[i]; n.When == when || n.When == "" && when == AtStart {
			n.make()
		}
	}
}

// make makes the noise, once or from now on.
func (n *Noise) make() {
	if n.Every == 0 {
		n.write()
		return
	}
	go func() {
		for {
			n.write()
			time.Sleep(n.Every)
		}
	}()
}

// write prints the noise and returns only when all of it is in the pipe.
func (n *Noise) write() {
	to := os.Stderr
	if n.Stdout {
		to = os.Stdout
	}
	_, _ = to.WriteString(n.Text)
	const most = 64 << 10
	line := n.LineBytes
	if line <= 0 {
		line = n.Bytes
	}
	column := 0
	for left := n.Bytes; left > 0; {
		size := min(line-column, left, most)
		part := strings.Repeat("#", size)
		column += size
		if column == line || size == left {
			part, column = part[:size-1]+"\n", 0
		}
		left -= size
		_, _ = to.WriteString(part)
	}
}

const (
	grandchildArg = "--fakekit-grandchild"
	// grandchildLife bounds what a leak can do.
	grandchildLife = 10 * time.Minute
)

// Fork starts a grandchild and tells of it.
func (c *Child) Fork(g Grandchild) error {
	cmd := exec.Command(c.Self, grandchildArg)
	if g.Setsid {
		cmd.SysProcAttr = detached()
	}
	if g.HoldPipes {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("forking a grandchild: %w", err)
	}
	c.Tell(Event{Kind: Forked, PID: cmd.Process.Pid, Parent: os.Getpid()})
	go func() { _ = cmd.Wait() }() // no zombie while the engine lives
	return nil
}
