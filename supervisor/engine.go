package supervisor

import (
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// Process is the half of an engine that is a process: how it is launched, what its output means, how it is stopped. The
// other half, its wire, is translate's. Its methods may be called from any goroutine.
type Process interface {
	// Probe asks the engine what it is. It is quick when the same binary has been asked before.
	Probe(ctx context.Context) (Build, error)
	// Command is what launches the engine. It does no I/O.
	Command(l Launch, b Build) Cmd
	// Line reads a line that the engine wrote, on either of its outputs.
	Line(line string) []Signal
	// Stop is what ends the process, step by step; after the last its whole group is killed.
	Stop() []StopStep
}

// Spec is what a model is loaded with. Two instances of one model may differ in it.
type Spec struct {
	Engine        string // the name of a Process
	Model         catalog.Model
	ContextLength int      // tokens that one request gets
	Parallel      int      // requests at a time: the engine's slots
	Args          []string // further arguments, by the operator's hand
}

// Launch is a Spec with what is chosen anew for each process.
type Launch struct {
	Spec
	Instance string // the name by which the engine is to call the model
	Port     int    // on 127.0.0.1
	APIKey   string // what the engine is to demand, if it can
}

// Build is an engine's binary.
type Build struct {
	Engine  string // e.g. "llama.cpp"
	Version string // e.g. "b11669"
	Path    string
	Flags   map[string]bool // the command-line flags that it knows, e.g. "--no-ui"
}

// Cmd is a command to run.
type Cmd struct {
	Path string
	Args []string
	Env  []string // all of its environment
}

// Signal is what a line of an engine's output says.
type Signal struct {
	Kind     SignalKind
	Progress float64 // 0 to 1, with SignalProgress
	Text     string  // the engine's words, with SignalTrouble
}

// SignalKind says what a Signal is about.
type SignalKind uint8

// The kinds of signals.
const (
	SignalProgress  SignalKind = iota + 1 // the model is loading
	SignalReady                           // requests can be sent
	SignalTrouble                         // why the load will fail, if it fails
	SignalPortTaken                       // the port can't be listened on
)

// StopStep is one attempt to end a process. When it hasn't ended after Wait, the next is made.
type StopStep struct {
	Action StopAction
	Text   string // with StopWrite
	Wait   time.Duration
}

// StopAction is a way to end a process.
type StopAction uint8

// The ways to end a process.
const (
	StopWrite      StopAction = iota + 1 // write Text to its standard input
	StopCloseInput                       // close its standard input
	StopTerminate                        // ask the whole group to end (SIGTERM)
)
