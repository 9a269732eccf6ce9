package process

import (
	"log/slog"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

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
	PromptCache    bool // bytes of prompts' states that it keeps beside its slots
	Devices        bool // which GPUs it is on
	LeastBatch     int  // the smallest BatchSize, in tokens, with which the engine works
}

// Fixed is what arguments decide of a load.
type Fixed struct {
	Context     bool   // the length of the context
	Slots       bool   // how many slots there are, or that all of them share one cache, so that nobody knows what is in which
	PromptCache *int64 // in bytes; nil: they don't
	Placement   bool   // on which devices how much of the model is
	Template    string // those that decide what the chat template makes of requests, or which template it is; empty: none does
}
