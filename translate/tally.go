package translate

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
		s.timings.addRound(t.timing)
	case t.timed:
		s.timings, s.timed = t.timing, true
	}
	return s
}

// addRound adds the measurements of a later round, of which the prompt doesn't count.
func (t *Timings) addRound(next Timings) {
	tokens := t.PredictedPerSecond*t.PredictedMillis + next.PredictedPerSecond*next.PredictedMillis
	if t.PredictedMillis += next.PredictedMillis; t.PredictedMillis > 0 {
		t.PredictedPerSecond = tokens / t.PredictedMillis
	}
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
