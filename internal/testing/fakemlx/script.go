package fakemlx

import (
	"cmp"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// Script says how the processes of one [Engine] behave. The zero value is a healthy mlx_lm.server 0.32.0. It travels as JSON; durations are
// nanoseconds there.
type Script struct {
	// Version is the version of mlx_lm. Default "0.32.0".
	Version string
	// HideFlags are flags ("--prompt-cache-bytes") that --help doesn't show and that are refused.
	HideFlags []string
	// HelpHangs makes --help and programs that render chats never answer.
	HelpHangs bool
	// NotMLX makes mlx_lm --version and mlx_lm.server --help fail, as a wrapper does that knows neither.
	NotMLX bool
	// Vocabulary is the number of tokens that the model knows. Default: vocab_size in its config.json, or else 32000.
	Vocabulary int
	// AnyModel loads a model whether or not there is one at its path.
	AnyModel bool
	// NoBatch is a model that can't be batched: each request is served alone, and progress begins with 0/N.
	NoBatch bool
	// NoTools is a model whose calls aren't parsed: they come as text.
	NoTools bool
	// PortTaken fails every start as if the port were in use (which a port in use does by itself). The process lives on.
	PortTaken bool
	// Load is how the model given by --model loads.
	Load Load
	// Noise is what it prints beside the log.
	Noise []fakekit.Noise
	// Grandchild, if not nil, is a process that it forks at its start and never ends.
	Grandchild *fakekit.Grandchild
	// Rules are tried in order for each request; the first that matches is used. Of the actions of a cue, Fault is an exception in
	// the generation thread with the cue's Message, which ends the thread, or, in a request that is served alone, the answer; Stick is a
	// thread that hangs without a word. A Status is answered with the rule's Body.
	Rules []fakekit.Rule
	// Renders lets the python3 beside it run a program that renders chats, as mlx_lm does. Otherwise such programs fail.
	Renders bool
	// Backend, if not nil, makes the answers, except to requests that a rule has an Answer for. The rest of a rule applies as well.
	Backend *Backend
	// Cases replace the whole script for some processes; the first that matches counts, and its own Cases don't.
	Cases []Case
}

// Case is a script for some of an engine's processes. Both conditions must hold.
type Case struct {
	// Argv is a substring of the process's arguments, joined by spaces. Empty: any.
	Argv string
	// Start is which of the engine's starts it is, from 1, counted over all of its processes except those for --version and --help. 0: any.
	Start int
	// Script is in force for such a process.
	Script Script
}

// Load is how a model loads. The port listens meanwhile, and /health is fine. Duration, Gate, Hang and Fail act in this order.
type Load struct {
	Duration time.Duration
	// Gate is waited for until [fakekit.Program.Release].
	Gate string
	// Busy burns processor time meanwhile, as a load does. Without it the process sleeps.
	Busy bool
	// Hang never goes on.
	Hang bool
	// Fail, if not empty, is the exception that ends the load and the generation thread, such as
	// "ValueError: Model type foobar not supported.". The process lives on.
	Fail string
	// Die, if not nil, ends the process, as running out of memory does.
	Die *fakekit.Death
}

func (s *Script) version() string { return cmp.Or(s.Version, "0.32.0") }

// forProcess is the script that is in force for one process.
func (s *Script) forProcess(argv []string, start int) *Script {
	line := strings.Join(argv, " ")
	for i := range s.Cases {
		c := &s.Cases[i]
		if strings.Contains(line, c.Argv) && (c.Start == 0 || c.Start == start) {
			return &c.Script
		}
	}
	return s
}
