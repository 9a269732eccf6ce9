package translate

import "time"

// Outcome is what is known of an answer at its end.
type Outcome struct {
	Reason  FinishReason
	Stop    Stop // zero where the engine doesn't say more than the Reason does
	Usage   Usage
	Timings Timings

	FirstToken time.Duration // from the request's arrival on; 0: unknown
}

// Note keeps what an event says of the end.
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

// StopReason says why generation ended. Whether a limit was the client's or the context's is told by the context's length,
// in tokens.
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

// Agree makes the reason fit the calls that the client is told: what was no call after all is content.
func (o *Outcome) Agree(calls int) {
	switch {
	case calls == 0 && o.Reason == FinishToolCalls:
		o.Reason = FinishStop
	case calls > 0 && o.Reason == FinishStop:
		o.Reason = FinishToolCalls
	}
}

// Add makes one outcome of those of several choices. The prompt is the same for all, and counts once.
func (o *Outcome) Add(p *Outcome) {
	if o.Reason == "" {
		*o = *p
		return
	}
	a, b := &o.Timings, &p.Timings
	if all := a.PredictedMillis + b.PredictedMillis; all > 0 {
		a.PredictedPerSecond = (a.PredictedPerSecond*a.PredictedMillis + b.PredictedPerSecond*b.PredictedMillis) / all
	}
	a.PromptMillis = min(a.PromptMillis, b.PromptMillis)
	o.FirstToken = min(o.FirstToken, p.FirstToken)
	a.PredictedMillis += b.PredictedMillis
	a.DraftTokens += b.DraftTokens
	a.DraftAccepted += b.DraftAccepted
	o.Usage.Completion += p.Usage.Completion
	o.Usage.Reasoning += p.Usage.Reasoning
}

// Rate is how many tokens were generated in a second. The engine counts from the first token on, which leaves nothing of a
// single one: that took as long as its prompt did.
func (t *Timings) Rate(tokens int) float64 {
	took := t.PromptMillis + t.PredictedMillis
	if t.PredictedPerSecond > 0 || tokens < 1 || took <= 0 {
		return t.PredictedPerSecond
	}
	return float64(tokens) / took * 1000
}

// Waited is how many seconds the client waited for the first token. Where that is unknown, it is what the engine took.
func Waited(first time.Duration, engine *Timings) float64 {
	if first > 0 {
		return first.Round(time.Microsecond).Seconds()
	}
	return engine.PromptMillis / 1000
}
