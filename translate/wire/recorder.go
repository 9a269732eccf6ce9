package wire

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// State is where an answer is on its way to the client. Several engines may make it, one after the other: each that is lost amid it leads
// to another, which resumes it, or to the end.
//
//	Connecting → Streaming → Done
//	Streaming → Lost or Diverged → Streaming (resumed), Full or Failed
type State uint8

// The states.
const (
	Connecting State = iota // no engine has begun to answer
	Streaming               // an engine answers
	Lost                    // the engine was lost, or can't parse its answer; the client has not been told
	Diverged                // the engine that was to replay the answer has said something else, none of which was emitted
	Full                    // an engine was lost after the last token that the answer may have: the next Close ends it as a whole one
	Failed                  // nothing more is tried: the next Close ends the answer with the error
	Done                    // the client has all of the answer
)

// ResumeMode is how the next engine resumes an answer.
type ResumeMode uint8

// The modes.
const (
	Restart  ResumeMode = iota // the client has seen nothing, and gets the new answer
	Replay                     // the same request is sent again, and what was said is left out of the answer
	Continue                   // the request has what was said in it, and the answer goes on after that
	Raw                        // the answer comes as the model writes it
	NoResume                   // no engine can resume it
)

// String returns the word for the mode in the log.
func (m ResumeMode) String() string {
	return [...]string{"anew", "repeated", "continued", "unparsed", "lost"}[m]
}

// Recorder is a decoder around that of an engine. It knows what the answer has said. If the engine is lost, or can't parse the answer,
// the decoders around the Recorder don't notice. It holds the error back until the decoder of another engine takes over, or until
// nobody tries again.
type Recorder struct {
	Filter

	said Said            // without its texts and figures
	text strings.Builder // and Text
	mind strings.Builder // and Reasoning

	state  State
	fault  *translate.Error // that is held back
	mode   ResumeMode       // of the current engine; Restart: it is the first
	before *Said            // when the current engine began; nil: it is the first
	left   left             // of an answer that is replayed
	tally  translate.Tally  // of the current engine
	held   figures          // of the current engine, which are wanted only if the answer ends
}

type left struct {
	reasoning, text string
	probs           int // tokens whose log probabilities were told
}

// figures are what an engine tells before the end of its answer. Each is nil until it has come.
type figures struct{ usage, timings, stop translate.Event }

// NewRecorder returns a Recorder around an engine's decoder.
func NewRecorder(d translate.Decoder) *Recorder {
	r := &Recorder{state: Streaming}
	r.Init(d, r.event)
	return r
}

// Recall makes the Recorder of an answer that was begun without one.
func Recall(said Said) *Recorder {
	r := NewRecorder(nil)
	r.said, r.before, r.state, r.fault = said, &said, Lost, translate.BrokenOff()
	r.mind.WriteString(said.Reasoning)
	r.text.WriteString(said.Text)
	return r
}

// Fault is the error of a lost engine; nil if there is none, or nothing is tried any more.
func (r *Recorder) Fault() *translate.Error {
	if r.IsLost() {
		return r.fault
	}
	return nil
}

// IsLost reports whether the engine was lost, or its answer wasn't a replay, and nothing has taken its place.
func (r *Recorder) IsLost() bool { return r.state == Lost || r.state == Diverged }

// HasDiverged reports whether the engine that was to replay the answer said something else.
func (r *Recorder) HasDiverged() bool { return r.state == Diverged }

// Resume makes the Recorder decode the answer of another engine.
func (r *Recorder) Resume(d translate.Decoder, mode ResumeMode) {
	if mode == Replay || r.state != Diverged { // otherwise nothing has come of the last engine
		said := r.Said()
		r.before = &said
	}
	r.inner, r.mode, r.tally, r.held, r.left = d, mode, translate.Tally{}, figures{}, left{}
	r.state, r.fault = Streaming, nil
	if mode == Replay {
		r.left = left{r.before.Reasoning, r.before.Text, r.before.Probs}
	}
}

// GiveUp has the next Close end the answer with the error of the lost engine.
func (r *Recorder) GiveUp() { r.state = Failed }

// Fill has the next Close end the answer of a lost engine as one that has reached its limit of tokens.
func (r *Recorder) Fill() { r.state = Full }

// Said returns what the answer has said so far.
func (r *Recorder) Said() Said {
	said := r.said
	said.Reasoning, said.Text = r.mind.String(), r.text.String()
	if r.inner == nil {
		return said
	}
	said.Usage, said.Timings = r.Figures()
	if said.IsExact = said.Usage.Completion > 0; !said.IsExact {
		said.Usage = r.joined(r.tally.Usage())
	}
	if r.mode == Replay && said.Usage.Completion < r.before.Usage.Completion {
		said.Usage, said.IsExact = r.before.Usage, r.before.IsExact
	}
	return said
}

// Figures returns the engine's usage and timings so far. The usage is zero if the engine doesn't tell it.
func (r *Recorder) Figures() (translate.Usage, translate.Timings) {
	usage, timings := r.Filter.Figures()
	if usage.Completion == 0 {
		return translate.Usage{}, timings
	}
	return r.joined(usage), r.joinedTimings(timings)
}

// Current measures what the current engine has used by itself, and not the whole answer.
func (r *Recorder) Current() Measurer { return current{r} }

type current struct{ *Recorder }

// Figures returns the engine's usage and timings so far.
func (c current) Figures() (usage translate.Usage, timings translate.Timings) {
	usage, timings = c.Filter.Figures()
	if usage.Completion == 0 {
		usage = c.tally.Usage()
	}
	return usage, timings
}

// Feed decodes p.
func (r *Recorder) Feed(p []byte, emit func(translate.Event) error) error {
	if r.state != Streaming {
		return nil
	}
	return r.Filter.Feed(p, emit)
}

// Close ends the engine's stream. An answer that is lost goes on, or is ended by another call after it was given up.
func (r *Recorder) Close(emit func(translate.Event) error) error {
	if r.state == Streaming {
		return r.Filter.Close(emit)
	}
	r.Begin(emit)
	switch r.state {
	case Failed:
		r.end(translate.Fault{Err: r.fault})
	case Full: // what the lost engine would have told, had it told why it ended
		said := r.Said()
		r.state, r.fault, r.held = Done, nil, figures{}
		r.Emit(said.Usage)
		if said.Timings != (translate.Timings{}) {
			r.Emit(said.Timings)
		}
		r.Emit(translate.Finish{Reason: translate.FinishLength})
	}
	return r.Err()
}

func (r *Recorder) event(it translate.Event) {
	r.tally.Add(it)
	switch ev := it.(type) {
	case translate.Prompt:
		if r.mode == Restart { // otherwise the client has seen a prompt end
			r.Emit(it)
		}
	case translate.Reasoning:
		if r.isBehind() {
			ev.Text = r.again(&r.left.reasoning, ev.Text)
			it = ev
		}
		if ev.Text != "" {
			r.said.IsMixed = r.said.IsMixed || r.text.Len() > 0
			r.record(&r.mind, ev.Text)
			r.Emit(it)
		}
	case translate.Text:
		if r.isBehind() {
			ev.Text = r.again(&r.left.text, ev.Text)
			it = ev
		}
		if ev.Text != "" {
			r.record(&r.text, ev.Text)
			r.Emit(it)
		}
	case translate.Logprobs:
		r.probs(ev)
	case translate.Usage:
		r.held.usage = it
	case translate.Timings:
		r.held.timings = it
	case translate.Stop:
		r.held.stop = it
	case translate.CallStart:
		if r.isBehind() {
			r.diverge()
			return
		}
		r.said.HasCalls = true
		r.Emit(it)
	case translate.Finish:
		if r.isBehind() {
			r.diverge()
			return
		}
		r.end(it)
	case translate.Fault:
		if ev.Err.IsBrokenOff() || ev.Err.IsUnparsed() {
			r.state, r.fault = Lost, ev.Err
		} else {
			r.end(it)
		}
	default:
		r.Emit(it)
	}
}

func (r *Recorder) isBehind() bool { return r.left.reasoning != "" || r.left.text != "" }

func (r *Recorder) diverge() {
	r.state, r.fault, r.held = Diverged, translate.BrokenOff(), figures{}
	r.Cut()
}

// again takes from left what a piece replays of it, and returns the rest of the piece. A piece that says something else ends the answer.
func (r *Recorder) again(left *string, piece string) (rest string) {
	n := min(len(*left), len(piece))
	isSame := (*left)[:n] == piece[:n]
	if isSame {
		*left, rest = (*left)[n:], piece[n:]
	}
	if !isSame || rest != "" && r.isBehind() {
		r.diverge()
		return ""
	}
	return rest
}

func (r *Recorder) record(to *strings.Builder, piece string) {
	if r.mind.Len()+r.text.Len()+len(piece) > MaxSaid {
		r.said.IsTooLong = true
		r.mind.Reset()
		r.text.Reset()
	}
	if !r.said.IsTooLong {
		to.WriteString(piece)
	}
}

func (r *Recorder) probs(ev translate.Logprobs) {
	tokens := gjson.ParseBytes(ev.Content).Array()
	if told := min(len(tokens), r.left.probs); told > 0 {
		r.left.probs -= told
		if tokens = tokens[told:]; len(tokens) == 0 {
			return
		}
		rest := []byte{'['}
		for _, token := range tokens {
			rest = append(jsonbody.AppendComma(rest), token.Raw...)
		}
		ev.Content = append(rest, ']')
	}
	r.said.Probs += len(tokens)
	r.Emit(ev)
}

// end emits the figures of the whole answer and its last event.
func (r *Recorder) end(last translate.Event) {
	held := r.held
	r.held = figures{}
	if usage, ok := held.usage.(translate.Usage); ok && r.mode != Restart {
		held.usage = r.joined(usage)
	}
	if timings, ok := held.timings.(translate.Timings); ok && r.mode != Restart {
		held.timings = r.joinedTimings(timings)
	}
	for _, ev := range [...]translate.Event{held.usage, held.timings, held.stop, last} {
		if ev != nil {
			r.Emit(ev)
		}
	}
}

// joined returns the usage of the whole answer. u is that of the current engine, of whose prompt what was said may be a part.
func (r *Recorder) joined(u translate.Usage) translate.Usage {
	if r.mode == Restart {
		return u
	}
	was := r.before.Usage
	if r.mode != Replay {
		said, more := was.Completion, u.Prompt-was.Prompt
		most := said + len(r.before.Text) + len(r.before.Reasoning)
		if !r.before.IsExact && was.Prompt > 0 && more > said && more <= most {
			said = more // a piece may have several tokens
		}
		if was.Prompt == 0 {
			u.Prompt = max(0, u.Prompt-said)
		}
		u.Completion += said
		u.Reasoning += was.Reasoning
	}
	if was.Prompt > 0 {
		u.Prompt, u.Cached = was.Prompt, was.Cached
	}
	return u
}

// joinedTimings returns the timings of the whole answer. An engine that replays it has measured all of it.
func (r *Recorder) joinedTimings(t translate.Timings) translate.Timings {
	if r.mode != Continue && r.mode != Raw || r.before.Timings.PredictedMillis <= 0 {
		return t
	}
	return r.before.Timings.Then(t)
}
