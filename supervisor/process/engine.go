package process

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Program is the process side of an engine: how it is launched, what its output means, and how it is stopped. Its wire format
// is in package translate. The methods are safe for concurrent use.
type Program interface {
	// Probe asks the engine's binary for its version and features. The answer is cached.
	Probe(ctx context.Context) (Build, error)
	// Command returns the command that launches the engine. It does no I/O.
	Command(l Launch, b Build) Cmd
	// Line interprets a line that the engine wrote to standard output or standard error. Once the engine is ready, only
	// SignalDead has a meaning: the process is killed when it has written what else it has to say.
	Line(line string) []schedule.Signal
	// Level returns the log level of a line. Lines below debug are dropped.
	Level(line string) slog.Level
	// Stop returns the steps that stop the process. After the last, its whole group is killed.
	Stop() []StopStep
}

// Optional interfaces of a Process. One that has none of them must report by a line that it is ready, and counts as hung only
// after the whole stall timeout.
type (
	// HealthChecker is a Process that can be asked whether it is ready.
	HealthChecker interface {
		// Health returns the path that answers with 200 once the engine is ready, also during requests. It is polled if the engine
		// doesn't report its state.
		Health() string
	}
	// Preparer is a Process that has something to find out before a launch.
	Preparer interface {
		// Prepare returns why the launch would fail, for clients. It takes a bounded time.
		Prepare(ctx context.Context, l *Launch) error
	}
	// Knower is a Process that can tell which models are newer than its engine.
	Knower interface {
		// Knows returns a function that says why the engine can't load a model, for people and without a full stop, or "" if it can
		// as far as is known. It is nil if nothing is known. No process is started.
		Knows() func(*catalog.Model) string
	}
	// Predictor is a Process whose engine may draft with layers of the model itself.
	Predictor interface {
		// Predicts reports whether the engine is sure to. It starts no process.
		Predicts(m *catalog.Model) bool
	}
	// Trier is a Process that doesn't say when its model is loaded. Once it listens, it is sent a small request, which it answers
	// when it is ready.
	Trier interface {
		// Trial returns the path and the body of the request.
		Trial() (path string, body []byte)
		// Tried returns nil if the answer shows that the engine is ready, and otherwise why the load has failed, for clients.
		Tried(status int, answer []byte) error
	}
	// Worker is a Process that can be asked what it is working on.
	Worker interface {
		// Activity returns the path that reports what a busy engine is doing. It is queried only while the engine is silent.
		Activity() string
		// Work parses the answer of Activity. It returns false if the answer has no such information.
		Work(answer []byte) (Work, bool)
	}
	// Pacer is a Process whose answers report the progress of their prompts.
	Pacer interface {
		// Pace parses the prompt progress in a piece of an answer. It returns false if there is none.
		Pace(piece []byte) (Pace, bool)
	}
	// DeviceLister is a Process that can list its devices.
	DeviceLister interface {
		// ListDevices returns the arguments with which it does, or nil if the build can't.
		ListDevices(b Build) []string
		// Devices parses the list. The result is never nil.
		Devices(list string) []Device
	}
	// Renderer is a Process that can show what a model's chat template makes of requests, without its engine.
	Renderer interface {
		// Rendering calls do with a function for a model of an engine that is launched with a Spec, and returns do's error. The
		// function returns the prompt that the template makes of a chat: messages, tools and chat_template_kwargs, in JSON, of
		// which the last two may be nil. ok is false if the template refuses the chat.
		Rendering(ctx context.Context, s *schedule.Spec, b Build, do func(render Render) error) error
	}
	// Saver is a Process that can write the states of its slots to files, and read them again.
	Saver interface {
		// CanSave reports whether an engine that is launched with a Spec can.
		CanSave(s *schedule.Spec, b Build) bool
		// Print returns what of a launch, besides the content of the files, decides whether a state of another one is valid.
		Print(s *schedule.Spec, b Build) string
		// Save returns the request that writes the state of a slot to a file in Launch.States. Saved parses the answer.
		Save(slot int, file string) (path string, body []byte)
		Saved(answer []byte) (SlotState, error)
		// Restore returns the request that reads it again. Restored parses the answer.
		Restore(slot int, file string) (path string, body []byte)
		Restored(answer []byte) (SlotState, error)
	}
	// Compiler is a Process whose engine's code may be compiled for a GPU at its first use there.
	Compiler interface {
		// Compile returns a request that uses what usual requests do, a long prompt and an answer; an empty path: there is none.
		Compile(l *Launch) (path string, body []byte)
	}
	// Batcher is a Process that evaluates a prompt in batches of a known size.
	Batcher interface {
		// BatchSize returns how many tokens of a prompt are evaluated at a time by an engine that was launched with a Spec.
		BatchSize(s *schedule.Spec) int
	}
)

// Render is what a [Renderer] makes.
type Render func(messages, tools, arguments json.RawMessage) (prompt string, ok bool, _ error)

// Launch is a Spec with the values that are chosen for each process.
type Launch struct {
	*schedule.Spec
	Cache    string             // a folder for files shared between launches, such as compiled shaders; empty: none
	Instance string             // the model's name, for the engine
	Folder   string             // for this launch alone; empty: none
	Socket   string             // the Unix socket in Folder to listen on; empty: the engine listens on Port
	Port     int                // on 127.0.0.1
	APIKey   string             // the key that the engine has to require, if it can
	On       schedule.Placement // where the model is to be
	States   string             // the folder for the states of slots; empty: none are saved
}

// SlotState is what was saved of a slot, or restored.
type SlotState struct {
	Tokens int
	Bytes  int64
	Took   time.Duration // as the engine measured it
}

// Build describes an engine's binary.
type Build struct {
	Engine  string // e.g. "llama.cpp"
	Version string // e.g. "b11669"
	Path    string
	Args    []string          // arguments that come before those of a launch, such as "-m" and "mlx_lm"
	Adapts  bool              // requests choose their adapters
	Root    string            // the folder of its runtime; empty: it isn't part of one
	Script  bool              // the binary is a script that starts the engine
	Sockets bool              // it can listen on a Unix socket
	Flags   map[string]string // its command-line flags, e.g. "--no-ui", with their help
	Devices []Device          // in addition to the CPU; nil: it can't list them
}

// Device is a GPU or another accelerator.
type Device struct {
	Name    string // the engine's, such as CUDA0
	Title   string // the maker's; empty: unknown
	Memory  int64  // bytes
	Free    int64  // bytes that were free when it was listed
	Unified bool   // it shares the machine's memory
	Context int64  // bytes that each process takes of it in addition to its buffers
}

// Cmd is a command to run.
type Cmd struct {
	Path  string
	Args  []string
	Env   []string      // the whole environment, except for where it may write
	Needs sandbox.Rules // sandbox rules in addition to those for its executable, folder, model, address and the system's libraries
	Guard bool          // it doesn't end when its standard input closes: a guard ends it if this server is killed
}

// IsCPU reports whether the device is the processor itself, under a name that a library gives it.
func (d Device) IsCPU() bool {
	return strings.HasPrefix(d.Name, schedule.CPU) || strings.HasPrefix(d.Name, "BLAS")
}

// Work is the activity of an engine.
type Work struct {
	Busy   int    // requests under way
	Tokens int    // of prompts being evaluated now, at most one batch
	Mark   string // changes whenever the engine makes progress
}

// Pace is the progress of a prompt.
type Pace struct {
	Tokens int           // evaluated so far
	Time   time.Duration // spent on them
}

// StopStep is one attempt to stop a process. If it hasn't exited after Wait, the next step follows.
type StopStep struct {
	Action StopAction
	Text   string // with StopWrite
	Wait   time.Duration
}

// StopAction is a way to stop a process.
type StopAction uint8

// The ways to stop a process.
const (
	StopWrite      StopAction = iota + 1 // write Text to its standard input
	StopCloseInput                       // close its standard input
)

// BatchSize returns how many tokens of a prompt an engine evaluates at a time, or 0 if that is unknown.
func BatchSize(engine Program, spec *schedule.Spec) int {
	if b, ok := engine.(Batcher); ok {
		return b.BatchSize(spec)
	}
	return 0
}

// Engine describes an engine: what it is called, which models it runs, what can be chosen of a load, and how its process
// is made. What is nil or 0 is left out.
type Engine struct {
	// Name is what the configuration calls it, such as "llama_server".
	Name string
	// Formats are those of the models that it runs.
	Formats []catalog.Format
	// Files has a way to find and read models of a format that the catalog doesn't know by itself.
	Files []catalog.Files

	// Find gives the path of its executable. It starts no process. The error says how to get one.
	Find func(Setup) (string, error)
	// New makes its process.
	New func(Setup) Program

	// Command says that its block in the configuration has the option command, which may be set instead of path: the executable and
	// the arguments that come before the others. Setup.Command then has whichever is set.
	Command bool
	// NoSandbox is why it can't run in the sandbox; empty: it can.
	NoSandbox string
	// Runs returns why it can't run a model of its formats, as a sentence for clients, or nil. It is asked before a model is
	// loaded, and must be fast. If it is nil, the engine runs all of them.
	Runs func(m *catalog.Model) error

	// Choices tells what can be chosen of a load of a model; nil: nothing.
	Choices func(m *catalog.Model) Choices
	// Estimate tells how much memory the model of a Spec takes when it is loaded with that, without its draft and its prompt
	// cache; nil: it is guessed by the size of the files.
	Estimate func(s *schedule.Spec) (catalog.Memory, error)
	// Fixed tells what of a load arguments decide that the operator has added; nil: nothing.
	Fixed func(args []string) Fixed
	// ContextStep is what it rounds a context up to a multiple of, in tokens.
	ContextStep int
	// MaxCheckpoints is how many checkpoints of a context it can keep for each slot; 0: it keeps none.
	MaxCheckpoints int
}

// Setup is what an engine's process is made with.
type Setup struct {
	Path     func() string   // of the executable, as it is configured now; empty: it isn't
	Command  func() []string // as it is configured now, with at least one word; nil: it isn't
	Runtimes string          // the folder of the runtimes that were fetched, each a folder
	Log      *slog.Logger
}

// Choices are what can be chosen of a load. What can't be is left to the engine.
type Choices struct {
	ContextLength  bool // else it is the model's maximum
	Parallel       bool // else it is 1
	BatchSize      bool
	FlashAttention bool
	OffloadKV      bool
	Experts        bool
	Draft          bool
	Adapters       bool
	PromptCache    bool // bytes of prompts' states that it keeps beside its slots
	Devices        bool // which GPUs it is on
	LeastBatch     int  // the smallest BatchSize, in tokens, with which the engine works
}

// Fixed is what arguments decide of a load.
type Fixed struct {
	Context     bool   // the length of the context
	Slots       bool   // how many slots there are, or that all of them share one cache, so that nobody knows what is in which
	PromptCache *int64 // in bytes; nil: they don't
	Adapters    bool   // which adapters change its weights
	Draft       bool   // what drafts for the model
	Placement   bool   // on which devices how much of the model is
	Template    string // those that decide what the chat template makes of requests, or which template it is; empty: none does
}
