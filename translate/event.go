// Package translate defines what dialects and engines share: the events of an answer, the items of a conversation, the
// error that clients see, and the interfaces of decoders and encoders.
//
// Each dialect that clients speak is a package below this one. It parses requests and encodes events. Each engine has a
// package, too: it builds the engine's requests and decodes its answers into events. These packages don't import each
// other. Between them stand package request, the neutral requests; package wire, the interfaces of an engine; and package
// jsonbody, the bytes of both sides.
//
// Nothing here does I/O.
package translate

import (
	"encoding/json"
	"errors"
	"time"
)

// Event is a step on the way from a request to the end of its answer. The set is closed: encoders switch over all types.
//
// A decoder's events for one upstream request follow
//
//	Prompt* (Reasoning | Text | CallStart CallArgs* CallDone | Logprobs)* Usage? Timings? Stop? (Finish | Fault)
//
// where calls may interleave by index. Queue and Load come before them, from the supervisor. Round, CallResult,
// CallApproval, CallInvalid, Trouble and ToolList come from the tool loop. FirstToken follows the prompt, from the reader of the stream.
type Event interface{ event() }

type (
	// Queue reports the number of requests ahead while the request waits for a slot.
	Queue struct{ Ahead int }

	// Load reports the progress of the load that the request waits for.
	Load struct {
		Phase    Phase
		Instance string
		Progress float64 // 0 to 1, never decreasing
		Seconds  float64 // duration of the load; with PhaseEnd only
	}

	// Prompt reports how much of the prompt the engine has processed.
	Prompt struct {
		Total     int // tokens of the whole prompt
		Cached    int // tokens that the engine kept from earlier requests
		Processed int // tokens processed so far, including Cached
	}

	// FirstToken reports that the answer has begun. After is the time since the request arrived, including the queue,
	// the load and the prompt.
	FirstToken struct{ After time.Duration }

	// Round begins one upstream request of a tool loop; the first is 1.
	Round struct{ Number int }

	// Reasoning is a piece of the model's thinking.
	Reasoning struct{ Text string }

	// Text is a piece of the model's answer.
	Text struct{ Text string }

	// CallStart begins a tool call. Index counts the calls of a round from 0.
	CallStart struct {
		Index    int
		ID, Name string
		Provider Provider
	}

	// CallArgs is a piece of the text of a call's JSON arguments.
	CallArgs struct {
		Index int
		Text  string
	}

	// CallDone ends a call's arguments.
	CallDone struct{ Index int }

	// CallResult is the result of a tool call.
	CallResult struct {
		Index   int
		Output  string // the JSON text of the MCP result's content array
		Given   []Part // what the model is given of it
		IsError bool
	}

	// CallApproval is a call that waits until its approval is given or refused, by its id.
	CallApproval struct {
		Index int
		ID    string
	}

	// CallInvalid is a call that can't be made: there is no such tool, or its arguments are invalid. A call of a tool that
	// doesn't exist has no CallStart.
	CallInvalid struct {
		Index        int
		ID, Name     string
		Reason       string
		ArgumentsBad bool // otherwise the name is
	}

	// Trouble is an error that the answer survives, such as a tool's server that died.
	Trouble struct{ Err *Error }

	// ToolList has the tools that an MCP server offers. It comes before the first Round.
	ToolList struct {
		Server string          // its label
		Tools  json.RawMessage // array of {name, input_schema, description?}
		Err    *Error          // why the server gave no list; nil if it did
	}

	// Logprobs has the log probabilities of the tokens of the preceding Text: an array of objects
	// {token, logprob, bytes, top_logprobs}.
	Logprobs struct{ Content json.RawMessage }

	// Usage is the number of tokens, as counted by the engine.
	Usage struct {
		Prompt     int // including Cached
		Cached     int
		Completion int // including Reasoning
		Reasoning  int // counted by us, accurate to a token or two
	}

	// Timings has the engine's own measurements.
	Timings struct {
		PromptMillis, PredictedMillis float64
		PredictedPerSecond            float64
		DraftTokens, DraftAccepted    int // 0 without speculative decoding
	}

	// Finish ends a complete answer.
	Finish struct{ Reason FinishReason }

	// Fault ends an answer that failed.
	Fault struct{ Err *Error }
)

// Phase is the state of a Load.
type Phase uint8

// A load starts, makes progress any number of times, and ends.
const (
	PhaseStart Phase = iota
	PhaseProgress
	PhaseEnd
)

// FinishReason is why generation ended.
type FinishReason string

// The reasons that engines give. Any other is passed on as it is.
const (
	FinishStop      FinishReason = "stop"
	FinishLength    FinishReason = "length"
	FinishToolCalls FinishReason = "tool_calls"
)

func (Queue) event()        {}
func (Load) event()         {}
func (Prompt) event()       {}
func (FirstToken) event()   {}
func (Round) event()        {}
func (Reasoning) event()    {}
func (Text) event()         {}
func (CallStart) event()    {}
func (CallArgs) event()     {}
func (CallDone) event()     {}
func (CallResult) event()   {}
func (CallApproval) event() {}
func (CallInvalid) event()  {}
func (Trouble) event()      {}
func (ToolList) event()     {}
func (Logprobs) event()     {}
func (Usage) event()        {}
func (Timings) event()      {}
func (Finish) event()       {}
func (Fault) event()        {}

// Decoder decodes an engine's stream into events.
//
// The events don't depend on how the bytes are split into calls of Feed. The last event is Finish or Fault. An error
// returned by emit ends the call and is returned.
type Decoder interface {
	// Feed returns [ErrCut] if the answer has ended but the engine would go on. The rest must not be read.
	Feed(p []byte, emit func(Event) error) error
	// Close reports the end of the stream to the decoder. An incomplete answer ends in a Fault.
	Close(emit func(Event) error) error
}

// ErrCut reports that an answer ended before the engine's, for example at a stop string.
var ErrCut = errors.New("the answer has ended before the engine's")

// Emitter emits the events of a decoder. Once an event has failed, nothing more is emitted, so that only Feed and Close look at the error.
type Emitter struct {
	emit func(Event) error
	err  error
}

// Begin begins a call of Feed or Close.
func (e *Emitter) Begin(emit func(Event) error) { e.emit, e.err = emit, nil }

// Emit emits an event.
func (e *Emitter) Emit(ev Event) {
	if e.err == nil {
		e.err = e.emit(ev)
	}
}

// Cut ends the call with [ErrCut].
func (e *Emitter) Cut() {
	if e.err == nil {
		e.err = ErrCut
	}
}

// Err returns what the call returns.
func (e *Emitter) Err() error { return e.err }

// Encoder encodes events in a dialect. Append appends what a client receives for an event, which may be nothing.
type Encoder interface {
	Append(dst []byte, ev Event) []byte
}

// Serial puts the pieces of calls that come interleaved in order, one call after the other, for dialects whose streams have no
// other way to tell them apart. Calls that come one after the other pass without delay.
type Serial struct {
	isOpen bool
	open   int     // the index of the call whose pieces pass
	held   []Event // pieces of other calls
}

// Add passes ev, and whatever it releases, to emit.
func (s *Serial) Add(ev Event, emit func(Event)) {
	index, isPiece := pieceOf(ev)
	switch {
	case !isPiece:
		switch ev.(type) {
		case Round, Reasoning, Text, Finish, Fault: // no more pieces come of the calls that are open
			s.release(emit)
		}
		emit(ev)
	case s.isOpen && index != s.open:
		s.held = append(s.held, ev)
	default:
		s.pass(ev, index, emit)
	}
}

func (s *Serial) pass(ev Event, index int, emit func(Event)) {
	switch ev.(type) {
	case CallStart:
		s.isOpen, s.open = true, index
	case CallDone:
		s.isOpen = false
	}
	emit(ev)
	if !s.isOpen && len(s.held) > 0 {
		held := s.held
		s.held = nil
		for _, ev := range held {
			s.Add(ev, emit)
		}
	}
}

// release emits what is held, each call in one piece.
func (s *Serial) release(emit func(Event)) {
	s.isOpen = false
	for len(s.held) > 0 {
		held := s.held
		s.held = nil
		first, _ := pieceOf(held[0])
		for _, ev := range held {
			if index, _ := pieceOf(ev); index == first {
				emit(ev)
			} else {
				s.held = append(s.held, ev)
			}
		}
	}
}

func pieceOf(ev Event) (index int, ok bool) {
	switch ev := ev.(type) {
	case CallStart:
		return ev.Index, true
	case CallArgs:
		return ev.Index, true
	case CallDone:
		return ev.Index, true
	default:
		return 0, false
	}
}
