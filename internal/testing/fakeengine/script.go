package fakeengine

import (
	"cmp"
	"strings"
	"time"
)

// Script says how the children of one [Engine] behave. The zero value is a healthy llama-server 0.7.0 that answers every chat with
// "Hello from the fake engine." at once. It travels as JSON; durations are nanoseconds there.
type Script struct {
	// Version is what --version prints after "version: ". Default "0.7.0 (build 11669, commit fake)".
	Version string
	// Fingerprint is build_info in /props and system_fingerprint in answers. Default "b11669-fake".
	Fingerprint string
	// AddFlags are further flags, shown by --help and accepted.
	AddFlags []Flag
	// RemoveFlags are spellings ("-lm", "--load-mode") that --help doesn't show and that are refused.
	RemoveFlags []string
	// NoChildProtocol is an old build: LLAMA_SERVER_ROUTER_PORT means nothing to it, so it writes no state lines and ignores its
	// standard input.
	NoChildProtocol bool
	// Silent is a build that also writes no log: only its port tells how it is.
	Silent bool
	// NoSockets is an older build that knows no Unix sockets: its help doesn't speak of them, and a --host that names one is refused.
	NoSockets bool
	// TrainContext is the model's n_ctx_train in tokens. Default 131072.
	TrainContext int
	// Infill says that the model has the tokens by which gaps are filled.
	Infill bool
	// PortTaken fails every start as if the port were in use (which a port in use does by itself).
	PortTaken bool
	// Load is how the model loads.
	Load Load
	// Stop is how the process takes requests to end.
	Stop Stop
	// Devices are its GPUs. Without any, the build can't list devices.
	Devices []Device
	// Noise is what it prints beside the log.
	Noise []Noise
	// Grandchild, if not nil, is a process that it forks at its start and never ends.
	Grandchild *Grandchild
	// ExitAfter ends the process with ExitCode when that many generating requests are over and no other runs. 0: never.
	ExitAfter int
	ExitCode  int
	// DieReading kills the process with SIGKILL when it has read that many bytes of a request's body. 0: never.
	DieReading int64
	// Rules are tried in order for each request; the first that matches is used.
	Rules []Rule
	// Cases replace the whole script for some processes; the first that matches counts, and its own Cases don't.
	Cases []Case
}

// Case is a script for some of an engine's processes: one model's, say, or the second start's. Both conditions must hold.
type Case struct {
	// Argv is a substring of the process's arguments, joined by spaces. Empty: any.
	Argv string
	// Start is which of the engine's starts it is, from 1, counted over all of its processes except those for --version and --help. 0: any.
	Start int
	// Script is in force for such a process.
	Script Script
}

// Load is how a model loads. Each stage (text_model, with -md spec_model, with -mm mmproj_model) reports 0.0, its steps and 1.0. Gate,
// Hang and Fail act in this order just before the last stage's 1.0.
type Load struct {
	// Duration is the whole load's, spread evenly over the steps. Default 0.
	Duration time.Duration
	// Steps is the number of equal steps of each stage. Default 1: 0.0 and 1.0 only.
	Steps int
	// Gate is waited for until [Engine.Release].
	Gate string
	// Hang never goes on: no progress, no readiness, and neither end of file nor the exit line is noticed.
	Hang bool
	// OnDevice is how many MiB of the model are on a GPU, as the log says. 0: none, and nothing is said.
	OnDevice int
	// Reduced is a GPU that has less room than the model needs.
	Reduced bool
	// Fail, if not nil, ends the process: see [LoadError] and [Death].
	Fail *Death
}

// Stop is how a process takes requests to end. The zero value is as measured on the real one: in child mode SIGTERM closes
// an idle server's listener, and the process lives on; the exit line and end of file end it; with a request in flight SIGTERM and the exit line freeze it until its client goes.
type Stop struct {
	// IgnoreTerm ignores SIGTERM and SIGINT, from the start on (a loading process otherwise dies of them at once).
	IgnoreTerm bool
	// IgnoreExit ignores the line cmd_router_to_child:exit.
	IgnoreExit bool
	// IgnoreEOF ignores the end of standard input.
	IgnoreEOF bool
	// TermWorks makes SIGTERM in child mode what it is without it: a graceful stop with status 0.
	TermWorks bool
}

// LoadError is how a real load fails: status 1, with cause as the decisive line, for instance
// "unknown model architecture: 'foobar'".
func LoadError(cause string) *Death {
	return &Death{Code: 1, Lines: []string{
		"0.00.080.100 E llama_model_load: error loading model: " + cause,
		"0.00.080.110 E llama_model_load_from_file_impl: failed to load model",
		"0.00.080.150 E cmn  common_init_: failed to load model '{model}'",
		"0.00.080.200 E srv    load_model: failed to load model, '{model}'",
		"0.00.080.300 I srv    operator(): operator(): cleaning up before exit...",
		"0.00.080.400 E srv  llama_server: exiting due to model loading error",
	}}
}

func (s *Script) version() string     { return cmp.Or(s.Version, "0.7.0 (build 11669, commit fake)") }
func (s *Script) fingerprint() string { return cmp.Or(s.Fingerprint, "b11669-fake") }
func (s *Script) trainContext() int   { return cmp.Or(s.TrainContext, 131072) }

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
