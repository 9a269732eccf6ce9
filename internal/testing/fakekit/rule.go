package fakekit

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Rule is the answer to the requests that it matches. All of its conditions must hold. A rule without a Path is for generating requests:
// POST to chat completions, completions, infill, embeddings and rerank. The zero Rule matches each of them and answers well.
type Rule struct {
	// Contains is a substring of the request's body. Empty: any.
	Contains string
	// Nth is which generating request of the process it is, from 1. 0: any.
	Nth int
	// Times is how often a process uses the rule, which counts anew when [Program.Set] changes it. 0: without limit.
	Times int
	// Path is the exact path. With the path of another endpoint, such as /health, only Gate, FirstDelay, Status and Body count.
	Path string

	// Status, if not 0, refuses the request at once, with Body, or with an error of that status where Body is empty.
	Status int
	Body   string
	// Answer is generated.
	Answer Answer
	// AfterTools are the answers after the first, second … round of tool calls since the last user message; the last one goes on.
	// Empty: Answer again.
	AfterTools []Answer
	// PromptTokens is the prompt's length. Default: from the words of the messages. Beyond the slot's context it is refused.
	PromptTokens int
	// CachedTokens of the prompt need no work.
	CachedTokens int
	// DraftTokens and DraftAccepted are told in the timings where DraftTokens isn't 0.
	DraftTokens, DraftAccepted int
	// IgnoreLimits generates the whole answer whatever max_tokens and stop say.
	IgnoreLimits bool

	// Gate is waited for before the first token, after the first progress chunk.
	Gate string
	// FirstDelay is waited for at the same place, after Gate.
	FirstDelay time.Duration
	// PromptDelay comes before each further progress chunk, or where it would be if they weren't asked for.
	PromptDelay time.Duration
	// Delay comes before each delta but the first.
	Delay time.Duration
	// Cues are what happens amid the answer.
	Cues []Cue
	// NoDone leaves out the final "data: [DONE]".
	NoDone bool
}

// Answer is what is generated, in this order: reasoning, text, tool calls. Each delta counts as one token. The zero Answer is
// "Hello from the fake engine.".
type Answer struct {
	// Reasoning is sent word by word, unless the request switches thinking off.
	Reasoning string
	// Text is sent word by word.
	Text string
	// Pieces are sent instead of Text, one in each delta.
	Pieces []string
	// Chunks, if not 0, is the number of text deltas: Text or Pieces are cut short or repeated to have as many.
	Chunks int
	// Calls are tool calls.
	Calls []ToolCall
	// Finish overrides the finish reason.
	Finish string
}

// ToolCall is a call that the fake model makes.
type ToolCall struct {
	Name string
	// Arguments is the text of the arguments, which needn't be JSON. It is sent in small fragments.
	Arguments string
	// ID is the call's id. Default: 32 random characters.
	ID string
}

// Cue is something that happens amid an answer. Cues with the same After happen in the order of the script.
type Cue struct {
	// After is the number of deltas that are sent first. With 0 nothing but progress has been sent, not even the headers; with the
	// number of all deltas only the finish chunk is to come.
	After int
	// Gate and then Delay are waited for before Do.
	Gate  string
	Delay time.Duration
	// Busy burns processor time meanwhile, as an engine does that works in silence. Only internal/testing/fakemlx does that.
	Busy bool
	// Do is what happens. Default: only the waiting.
	Do Action
	// Death is how Crash ends the process. Default: it aborts.
	Death *Death
	// Bytes are what Garbage writes. Default: a few that are neither UTF-8, JSON nor an event.
	Bytes []byte
	// Status and Message are Fault's. Default: 500 and "Context size has been exceeded.".
	Status  int
	Message string
}

// Action is what a [Cue] does.
type Action string

// The actions.
const (
	// Crash ends the process.
	Crash Action = "crash"
	// Hang sends nothing more (but pings) and waits for the client to go.
	Hang Action = "hang"
	// Stick hangs the loop for good: no request gets any further, whether or not its client is there, and no slot is given back. Only
	// the endpoints that generate nothing answer.
	Stick Action = "stick"
	// Cut closes the connection in the middle of the answer.
	Cut Action = "cut"
	// Garbage writes bytes into the answer, and goes on.
	Garbage Action = "garbage"
	// Fault ends the answer with an error: an error frame without "[DONE]" once a stream has begun, else an error status.
	Fault Action = "fault"
)

// Uses counts how often each rule was used, by its place and its text. The zero Uses is ready.
type Uses struct {
	mu sync.Mutex
	n  map[string]int
}

// Generating is the first rule for a generating request, or the zero Rule.
func (u *Uses) Generating(rules []Rule, path, body string, nth int) Rule {
	return u.first(rules, func(r *Rule) bool {
		return (r.Path == "" || r.Path == path) && (r.Nth == 0 || r.Nth == nth) && strings.Contains(body, r.Contains)
	})
}

// Other is the first rule for a request that generates nothing, or the zero Rule.
func (u *Uses) Other(rules []Rule, path, body string) Rule {
	return u.first(rules, func(r *Rule) bool { return r.Path == path && r.Nth == 0 && strings.Contains(body, r.Contains) })
}

func (u *Uses) first(rules []Rule, matches func(*Rule) bool) Rule {
	for i := range rules {
		if r := &rules[i]; matches(r) && (r.Times == 0 || u.isLeft(i, r)) {
			return *r
		}
	}
	return Rule{}
}

// isLeft reports whether a rule may be used once more, and counts that use.
func (u *Uses) isLeft(place int, r *Rule) bool {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("fakekit: encoding a rule: %v", err))
	}
	key := fmt.Sprintf("%d %s", place, text)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n[key] >= r.Times {
		return false
	}
	if u.n == nil {
		u.n = make(map[string]int)
	}
	u.n[key]++
	return true
}
