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
