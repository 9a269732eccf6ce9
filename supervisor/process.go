package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// outputDelay bounds the wait for output that a process's children hold open when it has ended itself.
	outputDelay = 2 * time.Second
	// lastWords is how many lines of an engine's output go into the error of a load that failed.
	lastWords = 3
)

// process is one run of an engine.
type process struct {
	gen     uint64
	log     *slog.Logger
	report  func(Event)
	options *Options
	mark    mark

	ctx    context.Context // ends when the process is to end, or has ended
	cancel context.CancelFunc

	launched atomic.Pointer[launched]
	stopOnce sync.Once
	exited   chan struct{}
	output   logRing
	ready    chan struct{} // closed when it is
	isReady  atomic.Bool
	pushes   atomic.Bool // it tells its state by itself
	stalled  *time.Timer // runs until ready
}

// launched is what is known once the process runs.
type launched struct {
	pid    int
	port   int
	apiKey string
	build  Build
	stdin  io.WriteCloser
	steps  []StopStep
}

func newProcess(gen uint64, log *slog.Logger, options *Options, report func(Event)) *process {
	p := &process{gen: gen, log: log, options: options, mark: options.mark(gen), report: report, exited: make(chan struct{}), ready: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// run launches the engine and waits for its end. It keeps its thread for as long as the engine lives.
func (p *process) run(engine Process, l Launch) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ended := Exited{Gen: p.gen, Reason: "it ended before it was ready"}
	if err := p.execute(engine, l); err != nil {
		ended.Reason = err.Error()
		ended.Killed = wasKilled(err)
	}
	if words := p.output.last(lastWords); words != "" {
		ended.Reason += "; its last words: " + words
	}
	if p.ctx.Err() != nil {
		ended.Reason, ended.Killed = "it was told to stop", false
	}
	p.cancel()
	p.log.Info("engine ended", "reason", ended.Reason)
	p.report(ended) // before exited is closed: who waits for that may rely on the state
	close(p.exited)
	p.mark.killAll() // last, since it looks at every process of the machine, and somebody may wait for the room
}

func (p *process) execute(engine Process, l Launch) error {
	build, err := engine.Probe(p.ctx)
	if err != nil {
		return err
	}
	if l.Port, err = freePort(); err != nil {
		return err
	}
	l.APIKey = rand.Text()
	command := engine.Command(l, build)
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env = append(command.Env, p.mark.variable())
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = outputDelay
	lines := func(line string) { p.line(engine, line) }
	stdout, stderr := &lineWriter{emit: lines}, &lineWriter{emit: lines}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	stdin, err := cmd.StdinPipe() // open for as long as we live: the engine ends when it closes
	if err != nil {
		return err
	}
	p.stalled = time.AfterFunc(p.options.stall(), p.stall)
	defer p.stalled.Stop()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s can't be started: %w", command.Path, err)
	}
	group, err := adopt(cmd.Process)
	if err != nil {
		p.log.Warn("the engine's children may outlive it", "error", err)
	}
	entry := p.mark.write(cmd.Process.Pid, p.log)
	p.launched.Store(&launched{cmd.Process.Pid, l.Port, l.APIKey, build, stdin, engine.Stop()})
	p.log.Info("engine launched", "pid", cmd.Process.Pid, "port", l.Port, "engine", build.Engine, "version", build.Version)
	if p.ctx.Err() != nil {
		group.kill() // it was to stop before it had begun
	}
	var watchers sync.WaitGroup
	watched, unwatch := context.WithCancel(p.ctx)
	watchers.Go(func() { p.sample(watched, cmd.Process.Pid) })
	watchers.Go(func() { p.poll(watched, engine.Health(), l) })
	err = cmd.Wait()
	unwatch()
	group.kill() // whatever it has left
	entry.remove()
	stdout.flush()
	stderr.flush()
	watchers.Wait()
	return describeExit(err)
}

// exitError says how a process ended.
type exitError struct{ state *os.ProcessState }

func (e exitError) Error() string { return fmt.Sprintf("the engine ended with %s", e.state) }

func describeExit(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errors.New("the engine ended")
	case errors.As(err, &exit):
		return exitError{exit.ProcessState}
	default:
		return fmt.Errorf("the engine ended: %w", err)
	}
}

// line reads a line of the engine's output.
func (p *process) line(engine Process, line string) {
	if p.isReady.Load() {
		p.keepLine(engine, line)
		return
	}
	signals := engine.Line(line)
	for _, sig := range signals {
		switch sig.Kind {
		case SignalReady:
			p.becomeReady()
			continue
		case SignalProgress:
			p.pushes.Store(true)
		}
		p.report(Signalled{p.gen, sig})
	}
	if len(signals) == 0 || signals[0].Kind >= SignalTrouble {
		p.keepLine(engine, line)
	}
	if !p.isReady.Load() {
		p.stalled.Reset(p.options.stall())
	}
}

func (p *process) keepLine(engine Process, line string) {
	level := engine.Level(line)
	if level < slog.LevelDebug {
		return
	}
	p.output.add(line)
	if p.log.Enabled(p.ctx, level) {
		p.log.Log(p.ctx, level, "engine", "line", line)
	}
}

// becomeReady may be called by whoever sees it first.
func (p *process) becomeReady() {
	if p.isReady.CompareAndSwap(false, true) {
		close(p.ready)
		p.report(Signalled{p.gen, Signal{Kind: SignalReady}})
	}
}

// stall ends an engine that has been silent for too long. Only silence counts, since a large model on a slow disk takes as
// long as it takes.
func (p *process) stall() {
	if p.isReady.Load() {
		return
	}
	text := fmt.Sprintf("the engine said nothing for %s while it was loading", p.options.stall())
	if words := p.output.last(lastWords); words != "" {
		text += "; its last words: " + words
	}
	p.report(Signalled{p.gen, Signal{Kind: SignalTrouble, Text: text}})
	p.stop()
}

// stop begins to end the process. It doesn't wait.
func (p *process) stop() { p.stopOnce.Do(func() { go p.walkSteps() }) }

// walkSteps ends the requests that are under way, since an engine may hang on them, then goes through the engine's own
// steps, and in the end kills.
func (p *process) walkSteps() {
	p.cancel()
	l := p.launched.Load()
	if l == nil {
		return // it isn't running yet; execute sees that it is to stop
	}
	group := groupOf(l.pid)
	for _, step := range l.steps {
		var err error
		switch step.Action {
		case StopWrite:
			_, err = io.WriteString(l.stdin, step.Text)
		case StopCloseInput:
			err = l.stdin.Close()
		case StopTerminate:
			err = group.terminate()
		}
		if err != nil {
			p.log.Debug("a step of stopping failed", "error", err)
		}
		timer := time.NewTimer(step.Wait)
		select {
		case <-p.exited:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	p.log.Warn("the engine didn't stop when asked; killing it", "pid", l.pid)
	group.kill()
}

// freePort finds a port that nobody listens on. Another program may still take it before the engine does; then the
// engine says so, and another is tried.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for the engine: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
