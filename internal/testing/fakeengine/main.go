package fakeengine

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// routerPort is the variable that switches the child protocol on, whatever its value.
const routerPort = "LLAMA_SERVER_ROUTER_PORT"

// MainIfChild runs the fake engine and ends the process, if the process was started through an [Engine]'s Path. Otherwise it returns at
// once. TestMain calls it first.
func MainIfChild() {
	if child := fakekit.ThisChild(name); child != nil {
		newProcess(child).run()
	}
}

// process is one running fake engine.
type process struct {
	*fakekit.Child
	routed bool // the child protocol is on
	args   *args
	uses   fakekit.Uses
	server *server

	stopOnce sync.Once     // guards stopping
	stopping chan struct{} // closed: requests in flight send nothing more

	stickOnce sync.Once     // guards stuck
	stuck     chan struct{} // closed: the loop turns no more
}

func newProcess(child *fakekit.Child) *process {
	return &process{Child: child, stopping: make(chan struct{}), stuck: make(chan struct{})}
}

// script returns the current script of this process.
func (p *process) script() *Script {
	s := new(Script)
	if err := p.ReadScript(s); err != nil {
		p.Exit(fakekit.ExitBroken, err.Error())
	}
	return s.forProcess(p.Argv, p.Start)
}

// run runs the process. It doesn't return.
func (p *process) run() {
	s := p.script()
	a, err := parseArgs(p.Argv, s.flags())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		p.Exit(1, err.Error())
	}
	if err := s.checkDevices(a.device); err != nil {
		fmt.Fprintln(os.Stderr, err)
		p.Exit(1, err.Error())
	}
	if a.help || a.version || a.listDevices {
		p.probe(s, a)
	}
	p.args = a
	if err := p.CountStart(); err != nil {
		p.Exit(fakekit.ExitBroken, err.Error())
	}
	s = p.script()
	_, routed := os.LookupEnv(routerPort)
	p.routed = routed && !s.NoChildProtocol && !s.Silent
	silent.Store(s.Silent)
	p.prepareSignals(s)

	logf('I', "srv  llama_server: initializing ...")
	p.server = newServer(p, s)
	if !p.server.listen(s.PortTaken, s.NoSockets) {
		logf('E', "srv  llama_server: exiting due to HTTP server error")
		p.Exit(1, "port in use")
	}
	if s.Grandchild != nil {
		if err := p.Fork(*s.Grandchild); err != nil {
			p.Exit(fakekit.ExitBroken, err.Error())
		}
	}
	fakekit.MakeNoise(s.Noise, AtStart)
	p.server.serve()
	p.load(s)
	p.becomeReady()
	select {} // the connections' goroutines, the signals and standard input go on
}

// probe answers --version, --help or --list-devices.
func (p *process) probe(s *Script, a *args) {
	p.Tell(Event{Kind: Probe, Argv: p.Argv})
	switch {
	case a.help:
		printHelp(os.Stdout, s.flags())
	case a.listDevices:
		s.printDevices()
	default:
		fmt.Fprintf(os.Stderr, "version: %s\nbuilt with GNU 16.2.0 for %s %s\n", s.version(), runtime.GOOS, runtime.GOARCH)
	}
	syscall.Exit(0)
}
