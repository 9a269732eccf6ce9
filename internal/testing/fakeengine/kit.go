package fakeengine

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

const name = "llama-server"

// Engine is an installed fake engine. Any number of processes can be started from it.
type Engine = fakekit.Program[Script]

// Install creates an engine in a temporary folder. A nil script means the zero Script. Processes still running at the end
// of the test are killed.
func Install(t testing.TB, s *Script) *Engine {
	t.Helper()
	return fakekit.Install(t, t.TempDir(), s, name)
}

// Event is a line of the journal.
type Event = fakekit.Event

// Kind is the kind of an [Event].
type Kind = fakekit.Kind

// Rule is the answer to the requests that it matches.
type Rule = fakekit.Rule

// Answer is what is generated.
type Answer = fakekit.Answer

// ToolCall is a call that the fake model makes.
type ToolCall = fakekit.ToolCall

// Cue is something that happens amid an answer.
type Cue = fakekit.Cue

// Action is what a [Cue] does.
type Action = fakekit.Action

// Noise is rubbish on an output stream.
type Noise = fakekit.Noise

// Death ends a process.
type Death = fakekit.Death

// Grandchild is a process that outlives the engine.
type Grandchild = fakekit.Grandchild

// The kinds of events; see [fakekit.Kind].
const (
	Probe     = fakekit.Probe
	Started   = fakekit.Started
	Forked    = fakekit.Forked
	Ready     = fakekit.Ready
	Request   = fakekit.Request
	Rendered  = fakekit.Rendered
	Queued    = fakekit.Queued
	Serving   = fakekit.Serving
	Gated     = fakekit.Gated
	Frozen    = fakekit.Frozen
	Hung      = fakekit.Hung
	Stuck     = fakekit.Stuck
	Cancelled = fakekit.Cancelled
	Finished  = fakekit.Finished
	Asked     = fakekit.Asked
	Acted     = fakekit.Acted
	Exit      = fakekit.Exit
)

// The actions of a [Cue], and when a [Noise] is made.
const (
	Crash   = fakekit.Crash
	Hang    = fakekit.Hang
	Stick   = fakekit.Stick
	Cut     = fakekit.Cut
	Garbage = fakekit.Garbage
	Fault   = fakekit.Fault

	AtStart   = fakekit.AtStart
	AtReady   = fakekit.AtReady
	AtRequest = fakekit.AtRequest
)

// Is matches the events of one kind.
func Is(k Kind) func(Event) bool { return fakekit.Is(k) }

// Of matches the events of one kind from one process.
func Of(pid int, k Kind) func(Event) bool { return fakekit.Of(pid, k) }

// At matches a child that waits for a gate.
func At(gate string) func(Event) bool { return fakekit.At(gate) }

// Alive reports whether a process exists and is no zombie.
func Alive(pid int) bool { return fakekit.Alive(pid) }
