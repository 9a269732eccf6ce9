package supervisor

import (
	"context"
	"log/slog"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/sandbox"
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
	// Level is how grave a line is. Below debug it isn't kept.
	Level(line string) slog.Level
	// Stop is what ends the process, step by step; after the last its whole group is killed.
	Stop() []StopStep
}

// What else a Process may be. One that is none of these has to tell by a line that it is ready, and counts as hung only
// after the whole stall timeout.
type (
	// HealthChecker is a Process that can be asked whether it is ready.
	HealthChecker interface {
		// Health is the path that answers with 200 once requests can be sent, also amid requests. It is asked of an engine
		// that doesn't tell by its lines.
		Health() string
	}
	// Worker is a Process that can be asked what it works on.
	Worker interface {
		// Activity is the path that tells what a busy engine is at. It is asked only when the engine says nothing by itself.
		Activity() string
		// Work reads an answer to that; false: it says nothing.
		Work(answer []byte) (Work, bool)
	}
	// Pacer is a Process whose answers tell how far their prompts are.
	Pacer interface {
		// Pace reads that from a piece of an answer; false: it isn't told.
		Pace(piece []byte) (Pace, bool)
	}
	// Batcher is a Process that evaluates a prompt in batches of a known size.
	Batcher interface {
		// BatchSize is how many tokens of a prompt are evaluated at a time by an engine that was launched with a Spec.
		BatchSize(s *Spec) int
	}
)

// Launch is a Spec with what is chosen anew for each process.
type Launch struct {
	*Spec
	Cache    string // a folder for what may be made once for all launches, such as compiled shaders; empty: there is none
	Instance string // the name by which the engine is to call the model
	Folder   string // of this launch alone; empty: there is none
	Socket   string // in it, that the engine is to listen on; empty: it is to listen on the port
	Port     int    // on 127.0.0.1
	APIKey   string // what the engine is to demand, if it can
}

// Build is an engine's binary.
type Build struct {
	Engine  string // e.g. "llama.cpp"
	Version string // e.g. "b11669"
	Path    string
	Root    string            // the folder of the runtime that it is part of; empty: it isn't part of one
	Script  bool              // it is a script that starts the engine
	Sockets bool              // it can listen on a Unix socket
	Flags   map[string]string // the command-line flags that it knows, e.g. "--no-ui", and what its help says of them
	Devices []Device          // that it can use beside the processor; nil: it can't tell
}

// Device is a GPU or the like.
type Device struct {
	Name    string
	Memory  int64 // bytes
	Unified bool  // the memory is the machine's own
}

// Cmd is a command to run.
type Cmd struct {
	Path  string
	Args  []string
	Env   []string      // all of its environment but where it may write
	Needs sandbox.Rules // beside its executable, its folder, the model, where it listens, and what any program needs
}

// Signal is what a line of an engine's output says.
type Signal struct {
	Kind     SignalKind
	Progress float64 // 0 to 1, with SignalProgress
	Text     string  // the engine's words, with SignalTrouble
	Bytes    int64   // with SignalBuffer
	Toggle   Toggle  // with SignalFlashAttention
}

// SignalKind says what a Signal is about.
type SignalKind uint8

// The kinds of signals.
const (
	SignalProgress       SignalKind = iota + 1 // the model is loading
	SignalReady                                // requests can be sent
	SignalTrouble                              // why the load will fail, if it fails
	SignalPortTaken                            // the port can't be listened on
	SignalOutOfMemory                          // memory was refused
	SignalBuffer                               // so much memory was taken for good
	SignalFlashAttention                       // whether it is used
)

// Work is what an engine is at.
type Work struct {
	Busy   int    // requests that it works on
	Tokens int    // of prompts, that it is evaluating now; at most a batch of them at a time
	Mark   string // changes whenever the engine gets on
}

// Pace is how far a prompt is.
type Pace struct {
	Tokens int           // that were evaluated
	Time   time.Duration // that took
}

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
