// Package child runs processes that end with this one.
//
// A child has a process group, or on Windows a job object, of its own, which is killed when the child exits, when Stop is called, and when
// this process ends in any way: by a guard on Unix, by Pdeathsig on Linux as well, and by the job object on Windows. What has left the
// group is found on Linux by a mark in its environment: when the child exits, or at the next start by EndLeftovers.
//
// Start does all of that. The parts are exported for packages that start processes in a way of their own.
package child

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os/exec"
	"sync"
	"time"
)

const (
	// stopPatience is how long Stop waits after it has closed the standard input, and again after SIGTERM.
	stopPatience = 2 * time.Second
	// outputDelay bounds how long the output of an exited child is read: another process may hold it open.
	outputDelay = 2 * time.Second
)

// Options says what Start starts.
type Options struct {
	// Path is the executable. A name without a separator is looked up in the PATH of Env, or else of this process. A relative
	// path is relative to Dir.
	Path string
	Args []string // without the name of the program
	Env  []string // the whole environment, except for the mark
	Dir  string   // empty: this process's directory
	// Journal is a folder in which the child is recorded for EndLeftovers. Empty: it isn't.
	Journal string
	// Line gets each line of standard error, cut to MaxLine bytes, from one goroutine. It must neither block nor call Stop. May be nil.
	Line func(line string)
	Log  *slog.Logger // may be nil
}

// Child is a process that Start has started. Stop must be called, even if it has exited.
type Child struct {
	Stdin io.WriteCloser
	// Stdout is to be read until its end. It is closed by Stop, and two seconds after the child has exited.
	Stdout io.ReadCloser
	PID    int

	cmd    *exec.Cmd
	guard  *Guard
	mark   Mark
	record Record
	done   chan struct{}
	err    error // once done is closed

	stopOnce sync.Once

	mu         sync.Mutex
	group      Group
	isReleased bool        // the group's id may belong to others
	closeLater *time.Timer // closes Stdout
}

// Start starts a child. Errors name the command, but contain neither its arguments nor its environment.
func Start(o Options) (*Child, error) { return startGuarded(o, guardShell) }

func startGuarded(o Options, shell string) (*Child, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Line == nil {
		o.Line = func(string) {}
	}
	c := &Child{mark: plain.Mark(o.Journal, rand.Text()), done: make(chan struct{})}
	var err error
	if c.cmd, err = o.command(c.mark); err != nil {
		return nil, err
	}
	pipes, err := OpenPipes(c.cmd)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	if c.guard, err = newGuard(shell, c.mark); err != nil {
		o.Log.Warn("a child process has no guard: if this server is killed, what the child has started may be left behind", "error", err)
	}
	c.cmd.SysProcAttr = c.guard.Attributes()
	endThread, err := StartOnThread(c.cmd.Start)
	if err != nil {
		endThread()
		pipes.Close()
		c.guard.End()
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	c.PID, c.Stdin, c.Stdout = c.cmd.Process.Pid, pipes.Stdin, pipes.ours[0]
	if c.group, err = c.guard.Adopt(c.cmd.Process); err != nil {
		o.Log.Warn("what a child process starts may outlive it", "pid", c.PID, "error", err)
	}
	c.record = c.mark.Record(c.PID, o.Log)
	pipes.read(pipes.ours[1:], o.Line, nil)
	go c.wait(pipes, endThread)
	return c, nil
}

// wait waits for the exit, kills what is left, and frees what belongs to the child, except for Stdout.
func (c *Child) wait(pipes *Pipes, endThread func()) {
	c.err = c.cmd.Wait() // closes Stdin, too
	c.group.Kill()
	c.mark.KillAll(c.PID)
	pipes.Drain()
	closeAll(pipes.reading)
	endThread()
	c.record.Remove()
	c.mu.Lock()
	c.isReleased = true
	c.guard.End()
	c.closeLater = time.AfterFunc(outputDelay, func() { _ = c.Stdout.Close() })
	c.mu.Unlock()
	close(c.done)
}

// Done returns a channel that is closed when the child has exited and its descendants are killed.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err returns how the child ended: nil if with status 0, else an *exec.ExitError. It is nil before Done is closed.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Stop ends the child and its descendants, closes its pipes, and returns when they are gone. It closes the standard input,
// sends SIGTERM to the group after two seconds, and kills after two more. It may be called several times, also concurrently.
func (c *Child) Stop() {
	c.stopOnce.Do(func() {
		go func() { _ = c.Stdin.Close() }() // on Windows, that may wait for a write
		if !c.exitsWithin(stopPatience) {
			c.signal(func() { _ = c.group.Terminate() })
			if !c.exitsWithin(stopPatience) {
				c.signal(func() {
					c.group.Kill()
					_ = c.cmd.Process.Kill() // it may have left the group
				})
			}
		}
		<-c.done
		c.closeLater.Stop()
		_ = c.Stdout.Close()
	})
}

// signal calls send unless the group is gone.
func (c *Child) signal(send func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isReleased {
		send()
	}
}

func (c *Child) exitsWithin(d time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(d):
		return false
	}
}
