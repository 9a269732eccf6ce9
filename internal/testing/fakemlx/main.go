package fakemlx

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// The names under which the fake is installed.
const (
	serverName  = "mlx_lm.server"
	commandName = "mlx_lm"
	pythonName  = "python3"
)

// Engine is an installed fake mlx_lm.server. Any number of processes can be started from it.
type Engine = fakekit.Program[Script]

// Install creates an engine in a temporary folder named bin. A nil script means the zero Script. Processes still running at the end of the
// test are killed.
func Install(t testing.TB, s *Script) *Engine {
	t.Helper()
	return fakekit.Install(t, filepath.Join(t.TempDir(), "bin"), s, serverName, commandName, pythonName)
}

// MainIfChild runs the fake and ends the process, if the process was started through an [Engine]'s Path or what is beside it. Otherwise it
// returns at once. TestMain calls it first.
func MainIfChild() {
	if child := fakekit.ThisChild(serverName, commandName, pythonName); child != nil {
		p := &process{Child: child, dead: make(chan struct{})}
		p.run()
	}
}

// process is one running fake.
type process struct {
	*fakekit.Child
	args   *args
	server *server
	thread *thread
	uses   fakekit.Uses

	dieOnce sync.Once     // guards dead
	dead    chan struct{} // closed: the generation thread has ended, and nothing is generated any more
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
	argv := p.serverArgs()
	s := p.script()
	var err error
	if p.args, err = parseArgs(argv, s.HideFlags); err != nil {
		fmt.Fprintf(os.Stderr, "%s%s: error: %v\n", usage(s.HideFlags), serverName, err)
		p.Exit(2, err.Error())
	}
	if p.args.help {
		p.help(s)
	}
	if err := p.CountStart(); err != nil {
		p.Exit(fakekit.ExitBroken, err.Error())
	}
	s = p.script()
	signal.Ignore(syscall.SIGPIPE)
	p.thread = newThread(p)
	p.server = &server{process: p}
	if s.Grandchild != nil {
		if err := p.Fork(*s.Grandchild); err != nil {
			p.Exit(fakekit.ExitBroken, err.Error())
		}
	}
	listening := p.server.listen(s.PortTaken)
	go p.thread.run()
	fakekit.MakeNoise(s.Noise, fakekit.AtStart)
	if !listening {
		select {} // the real one lives on for its generation thread's sake
	}
	p.watchInterrupt()
	p.server.serve()
}

// serverArgs are the arguments of the server, where the process is one. What else it was started for is done here.
func (p *process) serverArgs() []string {
	argv := p.Argv
	if p.Name == pythonName {
		switch {
		case len(argv) >= 2 && argv[0] == "-m" && argv[1] == "mlx_lm.server":
			fmt.Println("Calling `python -m mlx_lm.server...` directly is deprecated. Use `mlx_lm.server...` or `python -m mlx_lm server ...` instead.")
			return argv[2:]
		case len(argv) >= 2 && argv[0] == "-m" && argv[1] == "mlx_lm":
			argv = argv[2:]
		case slices.Equal(argv, []string{"--version"}):
			fmt.Println("Python 3.14.8")
			p.probed(0)
		case slices.Contains(argv, "-c") && p.script().Renders:
			p.render(p.script())
		default:
			fmt.Fprintln(os.Stderr, "fakemlx: this python3 only knows -m mlx_lm")
			p.probed(1)
		}
	}
	if p.Name == serverName {
		return argv
	}
	switch {
	case len(argv) > 0 && argv[0] == "server":
		return argv[1:]
	case len(argv) > 0 && argv[0] == "--version":
		s := p.script()
		if s.NotMLX {
			p.probed(1)
		}
		fmt.Println(s.version())
		p.probed(0)
	}
	fmt.Fprintln(os.Stderr, "ValueError: CLI requires a subcommand")
	p.probed(1)
	return nil
}

// probed ends a process that was only asked something.
func (p *process) probed(code int) {
	p.Tell(fakekit.Event{Kind: fakekit.Probe, Argv: p.Argv})
	syscall.Exit(code)
}

// hang never answers.
func (p *process) hang() {
	p.Tell(fakekit.Event{Kind: fakekit.Probe, Argv: p.Argv})
	select {}
}

// help answers --help.
func (p *process) help(s *Script) {
	if s.HelpHangs {
		p.hang()
	}
	if s.NotMLX {
		fmt.Fprintln(os.Stderr, "unknown option --help")
		p.probed(1)
	}
	fmt.Print(help(s.HideFlags))
	p.probed(0)
}

// watchInterrupt handles SIGINT as the real one does: it takes no more connections, lets the request that is served alone end, and exits with
// 0. SIGTERM kills it.
func (p *process) watchInterrupt() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	go func() {
		<-signals
		p.Tell(fakekit.Event{Kind: fakekit.Asked, Reason: "SIGINT"})
		p.server.close()
		p.thread.stop()
		p.Exit(0, "SIGINT")
	}()
}
