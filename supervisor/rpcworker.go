package supervisor

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// RPCWorker is llama.cpp's worker on this machine, which computes for a llama-server on another one.
type RPCWorker struct {
	Path       string // of its executable
	Root       string // the folder of its runtime; empty: it isn't part of one
	Host       string // the IPv4 address to listen on
	Port       int
	Threads    int      // 0: the worker's default, half of the processors
	Devices    []string // to compute on; empty: all GPUs, or else the processor
	Cache      string   // a folder for large tensors, so that a model's next load needn't send them; empty: none are kept
	Unconfined bool     // run it without a sandbox
}

// workers are the worker processes.
var workers = child.Kind{Variable: "LMCADDY_WORKER", Noun: "a worker"}

// Sandbox describes what the worker runs in.
func (w *RPCWorker) Sandbox() string {
	if w.Unconfined {
		return SandboxOff
	}
	return SandboxState()
}

// Run runs the worker until ctx ends, which is no error, or the worker does. It passes each line of its output to emit. It is called once in
// a process, in which SIGPIPE is ignored from then on: a worker inherits that, and would else be ended by a llama-server that disconnects
// while it is being answered. The worker listens on this machine alone, behind a workerFront.
func (w *RPCWorker) Run(ctx context.Context, emit func(line string), log *slog.Logger) error {
	signal.Ignore(syscall.SIGPIPE)
	listening := net.ListenConfig{KeepAliveConfig: clientAlive}
	listener, err := listening.Listen(ctx, "tcp4", net.JoinHostPort(w.Host, strconv.Itoa(w.Port)))
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	inner, err := freePort()
	if err != nil {
		return err
	}
	mark := workers.Mark("", rand.Text())
	guard, err := child.NewGuard(mark)
	if err != nil {
		log.Warn("the worker has no guard: if this process is killed, it may be left behind", "error", err)
	}
	defer guard.End()
	cmd := exec.Command(w.Path, w.args(inner)...)
	cmd.Env = append(engine.Environment(engine.IsScript(w.Path)), mark.Env(), "GGML_NO_BACKTRACE=1")
	if w.Cache != "" {
		cmd.Env = append(cmd.Env, "LLAMA_CACHE="+w.Cache)
	}
	cmd.Dir = "/" // it loads libraries from its folder
	if w.Root != "" {
		cmd.Dir = w.Root
	}
	cmd.SysProcAttr = guard.Attributes()
	out, err := openOutputs(cmd)
	if err != nil {
		return err
	}
	defer out.close()
	box, err := w.box(inner)
	if err != nil {
		return fmt.Errorf("the worker's sandbox: %w", err)
	}
	if box != nil {
		defer box.Close()
	}
	endThread, err := startOnThread(box, cmd)
	defer endThread()
	if err != nil {
		return fmt.Errorf("%s can't be started: %w", w.Path, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		(&workerFront{listener, workerAt(inner)}).serve(ctx)
	}()
	defer func() {
		cancel()
		<-served
	}()
	return wait(ctx, cmd, guard, out, emit)
}

// wait waits for the end of ctx or of the worker, and ends what is left of the worker.
func wait(ctx context.Context, cmd *exec.Cmd, guard *child.Guard, out *outputs, emit func(string)) error {
	var ring logRing
	out.read(func(line string) {
		ring.add(line)
		emit(line)
	}, nil)
	group, err := guard.Adopt(cmd.Process)
	if err != nil {
		return err
	}
	detach := context.AfterFunc(ctx, group.Kill)
	_ = cmd.Wait() // cmd.ProcessState says how it ended
	detach()
	group.Kill()
	out.drain()
	if ctx.Err() != nil {
		return nil
	}
	ended := fmt.Errorf("the worker ended with %s", cmd.ProcessState)
	if words := ring.last(lastWords); words != "" {
		ended = fmt.Errorf("%w; its last words: %s", ended, words)
	}
	return ended
}

// workerAt returns where the worker itself listens.
func workerAt(port int) string { return net.JoinHostPort(workerHost, strconv.Itoa(port)) }

const workerHost = "127.0.0.1"

func (w *RPCWorker) args(port int) []string {
	args := []string{"-H", workerHost, "-p", strconv.Itoa(port)}
	if w.Threads > 0 {
		args = append(args, "-t", strconv.Itoa(w.Threads))
	}
	if len(w.Devices) > 0 {
		args = append(args, "-d", strings.Join(w.Devices, ","))
	}
	if w.Cache != "" {
		args = append(args, "-c")
	}
	return args
}

// box returns the worker's sandbox: it reads its libraries and devices, writes its cache, and listens on its port; nil: it gets none.
func (w *RPCWorker) box(port int) (*sandbox.Box, error) {
	if _, err := sandbox.State(); err != nil || w.Unconfined {
		return nil, nil //nolint:nilerr // the system has no sandbox
	}
	rules := sandbox.Rules{Bind: []int{port}}
	allowSystem(&rules)
	allowExecutable(&rules, w.Path, w.Root)
	allowGPU(&rules, SandboxNarrow)
	if w.Cache != "" {
		if err := os.MkdirAll(w.Cache, 0o700); err != nil {
			return nil, err
		}
		rules.Write = append(rules.Write, w.Cache)
	}
	return sandbox.Prepare(rules)
}
