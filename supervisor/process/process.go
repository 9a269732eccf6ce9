package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// graveEvery is the least time between an engine's logged lines above debug level.
const graveEvery = time.Second

// lastWords is how many lines of an engine's output the error of a failed load quotes.
const lastWords = 3

// Process is one run of an engine.
type Process struct {
	client
	gen     uint64
	log     *slog.Logger
	report  func(schedule.Event)
	host    *Host
	program Program

	ctx    context.Context // ends when the process has to stop or has exited
	cancel context.CancelFunc

	life     life
	output   logRing
	lines    child.LineLog
	confined bool // it runs in a sandbox
	loading  loading
	pulse    *pulse
	oomKills atomic.Int64 // how many processes of the machine the system had killed for want of memory when it was last looked
	slots    *Slots       // of run alone; nil: states of its slots can't be saved

	// Set before the engine is started.
	first *compiling    // nil: nothing has to be compiled
	learn func(ask Ask) // see [Options]; nil: there is nothing to find out
}

// Launched is what is known of a running process.
type Launched struct {
	process *os.Process
	group   child.Group
	PID     int
	Address string // where it listens: the socket's path, or 127.0.0.1 and a port
	socket  string // empty: it listens on a port
	port    int
	header  []http1.Field // of requests, without its length; the first is all that one without a body needs
	Sandbox string
	Build   Build
	stdin   io.WriteCloser
	steps   []StopStep
	Slots   *Slots    // nil: states of its slots can't be saved
	At      time.Time // when it was started
}

func (l *Launched) kill() {
	l.group.Kill()
	_ = l.process.Kill() // it may have no group, where the system refused one
}

// NewProcess returns a process of a program that is launched with spec. It reports its events until it has exited.
func NewProcess(host *Host, gen uint64, program Program, spec *schedule.Spec, log *slog.Logger, report func(schedule.Event)) *Process {
	p := &Process{
		gen: gen, log: log, host: host, program: program, report: report,
		life:  life{ready: make(chan struct{}), exited: make(chan struct{})},
		lines: child.LineLog{Log: log, Message: "engine", Noun: "engine", Grave: graveEvery},
	}
	p.transport.Dial = p.dial
	p.transport.Idle, p.transport.MaxHead, p.transport.Closed = idleTimeout, maxHead, errEnded
	p.loading.listening = make(chan struct{})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	context.AfterFunc(p.ctx, p.transport.Close)
	p.pulse = &pulse{
		// Where nothing is known of its batches, one may be all that there is.
		engine: program, batch: max(1, cmp.Or(BatchSize(program, spec), spec.ContextLength*spec.Parallel)),
		slow:  spec.Model.Type == catalog.TypeLLM && spec.Model.Projector != "",
		stall: host.stall, ctx: p.ctx, ask: p.ask, condemn: p.condemn,
		usage: func(ctx context.Context) child.Usage { return p.launched.Load().usage(ctx) },
	}
	return p
}

// Run launches the engine and waits for its exit.
func (p *Process) Run(l Launch) {
	err := p.execute(l)
	from, why := p.life.gone()
	end := Ended
	switch {
	case from >= Failing: // it was killed by us
	case wasKilled(err) && oomKills() > p.oomKills.Load():
		end = OutOfMemory
	case wasEndedByOthers(err):
		end = Killed
	}
	ended := schedule.Exited{Gen: p.gen, Reason: cmp.Or(why, err.Error())}
	if from == Stopping {
		ended.Reason = cmp.Or(why, "it was told to stop")
	} else {
		ended.Killed, ended.OutOfMemory = from != Failing && wasKilled(err), end == OutOfMemory
		if p.launched.Load() == nil && openfiles.AreExhausted(err) {
			ended.NoFiles = openfiles.Message
		}
		if words := p.output.last(lastWords); words != "" && (from != Failing || !p.loading.knowsTrouble()) {
			ended.Reason += "; its last words: " + words
		}
		if p.confined && !p.life.wasReady() && (errors.Is(err, fs.ErrPermission) || p.output.contains(denial)) {
			ended.Reason += sandboxHint
		}
	}
	p.transport.Drain()
	p.cancel()
	p.log.Info("engine ended", "reason", ended.Reason)
	p.life.end = end
	p.report(ended) // before exited is closed, so that the state is up to date by then
	close(p.life.exited)
	p.slots.close()
}

// execute launches the engine, waits until nothing is left of it, and returns how it ended.
func (p *Process) execute(l Launch) error {
	build, command, err := p.prepare(&l)
	if err != nil {
		return err
	}
	if l.Folder != "" {
		defer func() { _ = os.RemoveAll(l.Folder) }()
	}
	mark := p.host.mark(p.gen)
	box, confined, err := p.confine(&l, &command, build)
	if err != nil {
		return fmt.Errorf("the engine's sandbox: %w", err)
	}
	if box != nil {
		defer box.Close()
	}
	var guard *child.Guard // nil: none is needed, or there can be none
	if command.Guard {
		if guard, err = child.NewGuard(mark); err != nil {
			p.log.Warn("the engine has no guard: if this server is killed, it may be left behind", "error", err)
		}
	}
	defer guard.End()
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env = append(command.Env, mark.Env())
	cmd.Dir = l.Folder // llama-server loads libraries from its working directory, and Python modules
	cmd.SysProcAttr = guard.Attributes()
	out, err := child.OpenPipes(cmd) // most engines exit when their input closes, which is when this server ends at the latest
	if err != nil {
		return fmt.Errorf("the engine's output: %w", err)
	}
	defer out.Close()
	p.oomKills.Store(oomKills())
	endThread, err := startOnThread(box, cmd)
	defer endThread()
	if err != nil {
		return fmt.Errorf("%s can't be started: %w", cmd.Path, err)
	}
	group, err := guard.Adopt(cmd.Process)
	if err != nil {
		p.log.Warn("the engine's children may outlive it", "error", err)
	}
	now := &Launched{
		process: cmd.Process, group: group, PID: cmd.Process.Pid, Address: l.address(), socket: l.Socket, port: l.Port,
		header:  []http1.Field{{Name: "Authorization", Value: "Bearer " + l.APIKey}, {Name: "Content-Type", Value: "application/json"}},
		Sandbox: confined, Build: build, stdin: out.Stdin, steps: p.program.Stop(), Slots: p.slots,
		At: time.Now(),
	}
	record := mark.Record(now.PID, p.log)
	p.began(now)
	defer p.monitor(out)()
	defer record.Remove()
	err = cmd.Wait()
	p.life.gone()
	group.Kill()
	mark.KillAll(now.PID)
	return describeExit(err)
}

func (p *Process) began(now *Launched) {
	p.life.become(Loading, byLaunch, "")
	p.launched.Store(now) // before its output is read, which may say at once that it is ready
	p.log.Info("engine launched", "pid", now.PID, "address", now.Address, "engine", now.Build.Engine, "version", now.Build.Version,
		"sandbox", now.Sandbox)
	if p.slots != nil {
		p.report(schedule.Savable{Gen: p.gen})
	}
	if p.ctx.Err() != nil {
		now.kill() // it was stopped before it was started
	}
}

// prepare completes a launch for the installed build of the engine, and returns that with its command.
func (p *Process) prepare(l *Launch) (Build, Cmd, error) {
	build, err := p.program.Probe(p.ctx)
	if err != nil {
		return Build{}, Cmd{}, err
	}
	if preparer, ok := p.program.(Preparer); ok {
		if err := preparer.Prepare(p.ctx, l); err != nil {
			return Build{}, Cmd{}, err
		}
	}
	// The folder is also the working directory, where engines look for libraries and modules: nobody else can have put any there.
	if l.Folder, err = p.host.folders.make(); err != nil {
		p.log.Warn("the engine's folder can't be created, so it listens on a port, and runs in this server's folder", "error", err)
	}
	if l.isConfined() && build.mayUseGPU() && p.host.Cache != "" && os.MkdirAll(p.host.Cache, 0o700) == nil {
		l.Cache = p.host.Cache
	}
	if build.Sockets && l.Folder != "" {
		l.Socket = filepath.Join(l.Folder, socketName)
	} else if l.Port, err = p.host.Port(); err != nil {
		return Build{}, Cmd{}, err
	}
	l.APIKey = rand.Text()
	p.slots = p.openSlots(l, build)
	p.first = p.toCompile(l, build)
	if p.host.Learn != nil {
		p.learn = p.host.Learn(p.ctx, l.Spec, build)
	}
	command := p.program.Command(*l, build)
	command.Env = append(command.Env, l.places()...)
	return build, command, nil
}

// monitor reads the engine's output, samples its memory and polls its health, until the function that it returns is called.
// That function waits for the end of the output.
func (p *Process) monitor(out *child.Pipes) func() {
	p.loading.begin(p.host.stall, func(why string) {
		if words := p.output.last(lastWords); words != "" {
			why += "; its last words: " + words
		}
		p.failLoad(byTimer, why)
	})
	out.Read(p.line, p.heard)
	ctx, cancel := context.WithCancel(p.ctx)
	var monitors sync.WaitGroup
	monitors.Go(func() { p.sample(ctx) })
	monitors.Go(func() { p.watch(ctx) })
	if trier, ok := p.program.(Trier); ok {
		monitors.Go(func() { p.awaitTrial(ctx, trier) })
	} else if checker, ok := p.program.(HealthChecker); ok {
		monitors.Go(func() { p.awaitHealth(ctx, checker.Health()) })
	}
	return func() {
		out.Drain()
		p.loading.end()
		cancel()
		monitors.Wait()
	}
}

func (p *Process) line(line string) {
	signals := p.program.Line(line)
	isLoading := p.life.isLoading()
	for _, sig := range signals {
		switch {
		case sig.Kind == schedule.SignalDead:
			p.life.fail(sig.Text, p.launched.Load().kill)
		case !isLoading:
		case sig.Kind == schedule.SignalReady:
			p.loaded(byOutput)
		case p.loading.isNews(sig):
			p.report(schedule.Signalled{Gen: p.gen, Signal: sig})
		}
	}
	if isLoading && len(signals) > 0 && signals[0].Kind < schedule.SignalTrouble {
		return
	}
	if level := p.program.Level(line); level >= slog.LevelDebug {
		p.output.add(line)
		p.lines.Write(p.ctx, level, line)
	}
}

func (p *Process) heard() {
	if p.life.isLoading() {
		p.loading.heard()
	}
	p.life.heard()
}

// loaded is called when a witness says that the model is loaded. The process is ready once its code is compiled and what there is
// to learn of its model is known.
func (p *Process) loaded(by witness) {
	if p.first == nil && p.learn == nil {
		p.becomeReady(by)
		return
	}
	if !p.life.become(Warming, by, "") {
		return
	}
	p.loading.advanced()
	go func() {
		if p.first != nil {
			p.compile(p.first)
		}
		if p.learn != nil {
			p.learn(p.askOnce)
		}
		p.becomeReady(byWarmUp)
	}()
}

func (p *Process) becomeReady(by witness) {
	if p.life.become(Ready, by, "") {
		p.report(schedule.Signalled{Gen: p.gen, Signal: schedule.Signal{Kind: schedule.SignalReady}})
	}
}

func (p *Process) failLoad(by witness, why string) {
	if p.life.become(Stopping, by, why) {
		go p.walkSteps()
	}
}

// StopFor starts to stop the process. It doesn't block.
func (p *Process) StopFor(why schedule.Reason) {
	if p.life.stop(why) {
		go p.walkSteps()
	}
}

// StopTook returns for how long the process has been told to stop; false: it wasn't.
func (p *Process) StopTook() (time.Duration, bool) {
	p.life.mu.Lock()
	defer p.life.mu.Unlock()
	return time.Since(p.life.ordered), p.life.order != ""
}

// walkSteps cancels the requests under way, since an engine may hang on them. Then it runs the engine's stop steps, and
// finally kills the process.
func (p *Process) walkSteps() {
	p.cancel()
	l := p.launched.Load()
	if l == nil {
		return // it isn't running yet; execute checks ctx
	}
	for _, step := range l.steps {
		var err error
		switch step.Action {
		case StopWrite:
			_, err = io.WriteString(l.stdin, step.Text)
		case StopCloseInput:
			err = l.stdin.Close()
		}
		if err != nil {
			p.log.Debug("a step of stopping failed", "error", err)
		}
		timer := time.NewTimer(step.Wait)
		select {
		case <-p.life.exited:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	if len(l.steps) > 0 {
		p.log.Warn("the engine didn't stop when asked; killing it", "pid", l.PID)
	}
	l.kill()
}
