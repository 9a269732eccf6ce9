package fakeengine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// routerPort is the variable that switches the child protocol on, whatever its value.
const routerPort = "LLAMA_SERVER_ROUTER_PORT"

// exitBroken is the status of a child that can't do its work, which is a fault of the test.
const exitBroken = 70

// MainIfChild runs the fake engine and ends the process, if the process was started through an [Engine]'s Path. Otherwise it returns at
// once. TestMain calls it first.
func MainIfChild() {
	base := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if base != name {
		return
	}
	self, err := locate(os.Args[0])
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeengine: %v\n", err)
		syscall.Exit(exitBroken)
	}
	go endWithTest(filepath.Dir(self))
	if len(os.Args) > 1 && os.Args[1] == grandchildArg {
		time.Sleep(grandchildLife)
		syscall.Exit(0)
	}
	p, err := newProcess(self)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeengine: %v\n", err)
		syscall.Exit(exitBroken)
	}
	p.run()
}

// locate is the installed executable that a process was started as: argv[0], or what it is a link to, with a script beside it.
func locate(argv0 string) (string, error) {
	path := argv0
	if !strings.ContainsRune(path, filepath.Separator) {
		if found, err := exec.LookPath(path); err == nil {
			path = found
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the installed engine: %w", err)
	}
	for range 16 {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), scriptFile)); err == nil {
			return path, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("no %s beside %s: start an engine by the path that Install returned", scriptFile, argv0)
}

// endWithTest ends a process that has outlived its test: the folder is gone, or, where the test binary panicked, that binary.
func endWithTest(dir string) {
	owner := 0
	if text, err := os.ReadFile(filepath.Join(dir, ownerFile)); err == nil {
		owner, _ = strconv.Atoi(string(text))
	}
	for {
		time.Sleep(5 * time.Second)
		if _, err := os.Stat(dir); os.IsNotExist(err) || !Alive(owner) {
			syscall.Exit(exitBroken)
		}
	}
}

// process is one running fake engine.
type process struct {
	self    string // the executable as installed
	dir     string
	argv    []string
	start   int
	child   bool // the child protocol is on
	args    *args
	journal *journal
	uses    uses
	server  *server

	ending   sync.Mutex    // held for good by whoever ends the process
	stopOnce sync.Once     // guards stopping
	stopping chan struct{} // closed: requests in flight send nothing more

	stickOnce sync.Once     // guards stuck
	stuck     chan struct{} // closed: the loop turns no more
}

func newProcess(self string) (*process, error) {
	p := &process{self: self, dir: filepath.Dir(self), argv: os.Args[1:], stopping: make(chan struct{}), stuck: make(chan struct{})}
	var err error
	p.journal, err = openJournal(p.dir)
	return p, err
}

// script returns the current script of this process.
func (p *process) script() *Script {
	s, err := readScript(p.dir)
	if err != nil {
		p.exit(exitBroken, err.Error())
	}
	return s.forProcess(p.argv, p.start)
}

// run runs the process. It doesn't return.
func (p *process) run() {
	s := p.script()
	a, err := parseArgs(p.argv, s.flags())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		p.exit(1, err.Error())
	}
	if a.help || a.version {
		p.probe(s, a)
	}
	p.args = a
	if p.start, err = p.countStart(); err != nil {
		p.exit(exitBroken, err.Error())
	}
	s = p.script()
	_, routed := os.LookupEnv(routerPort)
	p.child = routed && !s.NoChildProtocol && !s.Silent
	silent.Store(s.Silent)
	p.prepareSignals(s)

	logf('I', "srv  llama_server: initializing ...")
	p.server = newServer(p, s)
	if !p.server.listen(s.PortTaken, s.NoSockets) {
		logf('E', "srv  llama_server: exiting due to HTTP server error")
		p.exit(1, "port in use")
	}
	if s.Grandchild != nil {
		if err := p.fork(*s.Grandchild); err != nil {
			p.exit(exitBroken, err.Error())
		}
	}
	makeNoise(s, AtStart)
	p.server.serve()
	p.load(s)
	p.becomeReady()
	select {} // the connections' goroutines, the signals and standard input go on
}

// probe answers --version or --help.
func (p *process) probe(s *Script, a *args) {
	p.journal.tell(Event{Kind: Probe, Argv: p.argv})
	if a.help {
		printHelp(os.Stdout, s.flags())
	} else {
		fmt.Fprintf(os.Stderr, "version: %s\nbuilt with GNU 16.2.0 for %s %s\n", s.version(), runtime.GOOS, runtime.GOARCH)
	}
	syscall.Exit(0)
}

// countStart returns the number of this start, counted over all of the engine's processes: the process that creates a
// numbered file first gets the number.
func (p *process) countStart() (int, error) {
	for n := 1; ; n++ {
		f, err := os.OpenFile(filepath.Join(p.dir, startFolder, strconv.Itoa(n)), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return n, f.Close()
		}
		if !os.IsExist(err) {
			return 0, fmt.Errorf("counting the start: %w", err)
		}
	}
}

// tellStarted records how the process was started, once the port is known.
func (p *process) tellStarted(port int) {
	e := Event{Kind: Started, Start: p.start, Parent: os.Getppid(), Argv: p.argv, Env: map[string]string{}, Port: port}
	for _, pair := range os.Environ() {
		key, value, _ := strings.Cut(pair, "=")
		e.EnvNames = append(e.EnvNames, key)
		if strings.HasPrefix(key, "LLAMA_") || strings.HasPrefix(key, "GGML_") {
			e.Env[key] = value
		}
	}
	if dir, err := os.Getwd(); err == nil {
		e.Dir = dir
	}
	p.journal.tell(e)
}

func makeNoise(s *Script, when string) {
	for i := range s.Noise {
		if n := &s.Noise[i]; n.When == when || n.When == "" && when == AtStart {
			n.make()
		}
	}
}
