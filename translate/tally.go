package translate

// Tally counts the tokens of an answer from its events, also of one that never comes to its end: then it is what was seen.
type Tally struct {
	usage    Usage
	pieces   int
	thoughts int // of the pieces
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

// Usage is what was counted.
func (t *Tally) Usage() Usage {
	if t.complete {
		return t.usage
	}
	u := t.usage
	u.Completion, u.Reasoning = t.pieces, t.thoughts
	return u
}
