package translate

import (
	"encoding/json"
	"time"
)

// Event is one thing that happens on the way from a request to the end of its answer. The set is closed: encoders switch
// over all of it.
//
// A decoder's events for one upstream request follow
//
//	Prompt* (Reasoning | Text | CallStart CallArgs* CallDone | Logprobs)* Usage? Timings? Stop? (Finish | Fault)
//
// where the calls may interleave by index. Queue and Load come before them and are the supervisor's; Round, CallResult,
// CallInvalid and ToolList are the tool loop's. FirstToken follows the prompt, and is of who reads the stream.
type Event interface{ event() }

type (
	// Queue says how many requests are ahead while the request waits for a slot.
	Queue struct{ Ahead int }

	// Load tells of the loading that the request waits for.
	Load struct {
		Phase    Phase
		Instance string
		Progress float64 // 0 to 1, never falling
		Seconds  float64 // how long it took; with PhaseEnd only
	}

	// Prompt tells how much of the prompt the engine has processed.
	Prompt struct {
		Total     int // tokens of the whole prompt
		Cached    int // of them, what the engine still had from earlier requests
		Processed int // of Total, Cached included
	}

	// FirstToken tells that the answer has begun, and how long the client has waited for that, from the arrival of its
	// request on: in the queue, for a load and for the prompt.
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

	// CallResult is what the tool answered.
	CallResult struct {
		Index   int
		Output  string // the JSON text of the MCP result's content array
		IsError bool
	}

	// CallInvalid is a call that can't be made: there is no such tool, or the arguments don't fit. A call of a tool that doesn't
	// exist has no CallStart.
	CallInvalid struct {
		Index        int
		Name         string
		Reason       string
		ArgumentsBad bool // else the name is
	}

	// ToolList is what an MCP server offers.
	ToolList struct {
		Server string
		Tools  json.RawMessage
	}

	// Logprobs are the log probabilities of the tokens of the Text before it: an array of the OpenAI shape
	// {token, logprob, bytes, top_logprobs}.
	Logprobs struct{ Content json.RawMessage }

	// Usage counts tokens, as the engine does.
	Usage struct {
		Prompt     int // Cached included
		Cached     int
		Completion int // Reasoning included
		Reasoning  int // counted by us, to within a token or two
	}

	// Timings are the engine's own measurements.
	Timings struct {
		PromptMillis, PredictedMillis float64
		PredictedPerSecond            float64
		DraftTokens, DraftAccepted    int // 0 without speculative decoding
	}

	// Finish ends an answer that ran to its end.
	Finish struct{ Reason FinishReason }

	// Fault ends an answer that didn't.
	Fault struct{ Err *Error }
)

// Phase is where a Load stands.
type Phase uint8

// A load starts, progresses any number of times, and ends.
const (
	PhaseStart Phase = iota
	PhaseProgress
	PhaseEnd
)

// FinishReason says why generation ended, in the OpenAI-style words.
type FinishReason string

// What the engines say. Anything else they say is passed on as it is.
const (
	FinishStop      FinishReason = "stop"
	FinishLength    FinishReason = "length"
	FinishToolCalls FinishReason = "tool_calls"
)

func (Queue) event() {}

func (Load) event() {}

func (Prompt) event() {}

func (FirstToken) event() {}

func (Round) event() {}

func (Reasoning) event() {}

func (Text) event() {}

func (CallStart) event() {}

func (CallArgs) event() {}

func (CallDone) event() {}

func (CallResult) event() {}

func (CallInvalid) event() {}

func (ToolList) event() {}

func (Logprobs) event() {}

func (Usage) event() {}

func (Timings) event() {}

func (Finish) event() {}

func (Fault) event() {}
