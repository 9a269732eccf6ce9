package translate

import "time"

// Outcome is what is known about an answer at its end.
type Outcome struct {
	Reason  FinishReason
	Stop    Stop // zero if the engine gives nothing but the Reason
	Usage   Usage
	Timings Timings

	FirstToken time.Duration // since the request arrived; 0 if unknown
}

// Note records what an event reports about the end.
func (o *Outcome) Note(ev Event) {
	switch ev := ev.(type) {
	case Usage:
		o.Usage = ev
	case Timings:
		o.Timings = ev
	case Stop:
		o.Stop = ev
	case FirstToken:
		o.FirstToken = ev.After
	case Finish:
		o.Reason = ev.Reason
	}
}

// StopReason returns why generation ended. The context's length in tokens distinguishes its end from the client's limit.
func (o *Outcome) StopReason(contextLength int) StopReason {
	isFull := contextLength > 0 && o.Usage.Prompt+o.Usage.Completion >= contextLength
	switch {
	case o.Reason == FinishToolCalls:
		return StopToolCalls
	case o.Reason == FinishLength && (isFull || o.Stop.Reason == StopContext):
		return StopContext
	case o.Reason == FinishLength:
		return StopMaxTokens
	case o.Reason == FinishStop && o.Stop.Reason != StopString:
		return StopEOS
	case o.Stop.Reason != "":
		return o.Stop.Reason
	default:
		return StopEOS
	}
}

// Agree adjusts the reason to the number of calls that the client receives: an invalid call has become content.
func (o *Outcome) Agree(calls int) {
	switch {
	case calls == 0 && o.Reason == FinishToolCalls:
		o.Reason = FinishStop
	case calls > 0 && o.Reason == FinishStop:
		o.Reason = FinishToolCalls
	}
}

// Add adds the outcome of another choice. Choices share the prompt, so it counts once.
func (o *Outcome) Add(p *Outcome) {
	if o.Reason == "" {
		*o = *p
		return
	}
	promptMillis := min(o.Timings.PromptMillis, p.Timings.PromptMillis)
	o.Timings = o.Timings.Then(p.Timings)
	o.Timings.PromptMillis = promptMillis
	o.FirstToken = min(o.FirstToken, p.FirstToken)
	o.Usage.Completion += p.Usage.Completion
	o.Usage.Reasoning += p.Usage.Reasoning
}

// Then returns the measurements of an answer that goes on with the next: those of the next one's prompt don't count.
func (t Timings) Then(next Timings) Timings {
	tokens := t.PredictedPerSecond*t.PredictedMillis + next.PredictedPerSecond*next.PredictedMillis
	if t.PredictedMillis += next.PredictedMillis; t.PredictedMillis > 0 {
		t.PredictedPerSecond = tokens / t.PredictedMillis
	}
	t.DraftTokens += next.DraftTokens
	t.DraftAccepted += next.DraftAccepted
	return t
}

// Rate returns the generated tokens per second. Engines measure from the first token on, which gives no rate for a single
// token: its duration is that of the prompt.
func (t *Timings) Rate(tokens int) float64 {
	took := t.PromptMillis + t.PredictedMillis
	if t.PredictedPerSecond > 0 || tokens < 1 || took <= 0 {
		return t.PredictedPerSecond
	}
	return float64(tokens) / took * 1000
}

// Figures are what people want to know of an answer, as it is stored. What is unknown is 0.
type Figures struct {
	Rate       float64 `json:"rate,omitempty"`        // generated tokens per second
	FirstToken float64 `json:"first_token,omitempty"` // seconds
	Context    int     `json:"context,omitempty"`     // length of the instance's context, in tokens
}

// Waited returns the seconds that the client waited for the first token, or those the engine took if that is unknown.
func Waited(first time.Duration, engine *Timings) float64 {
	if first > 0 {
		return first.Round(time.Microsecond).Seconds()
	}
	return engine.PromptMillis / 1000
}

// StopReason is why generation ended, more exactly than a [FinishReason].
type StopReason string

// The stop reasons.
const (
	StopEOS       StopReason = "eosFound"
	StopString    StopReason = "stopStringFound"
	StopToolCalls StopReason = "toolCalls"
	StopMaxTokens StopReason = "maxPredictedTokensReached"
	StopContext   StopReason = "contextLengthReached"
	StopUser      StopReason = "userStopped"
	StopUnloaded  StopReason = "modelUnloaded"
	StopFailed    StopReason = "failed"
)

// Stop reports why generation ended, more exactly than the Finish that follows it.
type Stop struct {
	Reason StopReason
	Text   string // the stop string that was found, with StopString
}

func (Stop) event() {}

// Tally counts the tokens of an answer from its events. For an answer without an end, it counts the pieces seen.
type Tally struct {
	usage    Usage
	pieces   int
	thoughts int // pieces of reasoning
	complete bool
}

// Add counts an event.
func (t *Tally) Add(ev Event) {
	switch ev := ev.(type) {
	case Prompt:
		t.usage.Prompt, t.usage.Cached = ev.Total, ev.Cached
	case Reasoning:
		t.pieces++
		t.thoughts++
	case Text, CallArgs:
		t.pieces++
	case Usage:
		t.usage, t.complete = ev, true
	}
}

// Usage returns the tokens counted so far.
func (t *Tally) Usage() Usage {
	if t.complete {
		return t.usage
	}
	u := t.usage
	u.Completion, u.Reasoning = t.pieces, t.thoughts
	return u
}

// RoundTally counts the tokens of an answer of several rounds, and adds up their measurements. A round that is begun again counts
// once. The zero value counts an answer of one round.
type RoundTally struct {
	round  int   // number of the current round
	tally  Tally // of the current round
	past   sums  // of the rounds before it
	timed  bool  // the current round has timings
	timing Timings
}

type sums struct {
	last    Usage // the prompt of the last of them
	all     Usage // the prompts and the generated tokens
	timed   bool
	timings Timings
}

// Add counts an event.
func (t *RoundTally) Add(ev Event) {
	switch ev := ev.(type) {
	case Round:
		t.begin(ev.Number)
	case Timings:
		t.timing, t.timed = ev, true
	default:
		t.tally.Add(ev)
	}
}

func (t *RoundTally) begin(number int) {
	if number != t.round {
		t.past = t.sums()
	}
	t.round, t.tally, t.timed = number, Tally{}, false
}

func (t *RoundTally) sums() sums {
	s, u := t.past, t.tally.Usage()
	if u.Prompt > 0 {
		s.last = u
	}
	s.all.Prompt += u.Prompt
	s.all.Cached += u.Cached
	s.all.Completion += u.Completion
	s.all.Reasoning += min(u.Reasoning, u.Completion)
	switch {
	case t.timed && s.timed:
		s.timings = s.timings.Then(t.timing)
	case t.timed:
		s.timings, s.timed = t.timing, true
	}
	return s
}

// Usage returns the prompt of the last round, and the generated tokens of all rounds.
func (t *RoundTally) Usage() Usage {
	s := t.sums()
	return Usage{Prompt: s.last.Prompt, Cached: s.last.Cached, Completion: s.all.Completion, Reasoning: s.all.Reasoning}
}

// Sum returns the prompts and the generated tokens of all rounds.
func (t *RoundTally) Sum() Usage { return t.sums().all }

// Timings returns the measurements: of the prompt, those of the first round.
func (t *RoundTally) Timings() Timings { return t.sums().timings }
