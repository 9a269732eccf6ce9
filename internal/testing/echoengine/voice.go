package echoengine

import (
	"encoding/json"
	"net/http"
	"strings"
)

// voice writes an answer.
type voice struct {
	w     http.ResponseWriter
	limit int // words; 0: none
	words int
}

// call is a tool's name, and its arguments in JSON.
type call struct{ tool, args string }

func (v *voice) isOver() bool { return v.limit > 0 && v.words >= v.limit }

// tell writes a line at once.
func (v *voice) tell(l line) {
	text, _ := json.Marshal(l)
	_, _ = v.w.Write(append(text, '\n'))
	_ = http.NewResponseController(v.w).Flush()
}

// put tells a word of the answer, within the limit.
func (v *voice) put(l line) {
	if v.isOver() {
		return
	}
	v.words++
	v.tell(l)
}

func (v *voice) say(text string) {
	for word := range strings.SplitAfterSeq(text, " ") {
		if word != "" {
			v.put(line{Say: word})
		}
	}
}

// call calls tools in parallel: first it names them all, then it gives the first half of the arguments of each, and the second.
func (v *voice) call(calls ...call) {
	for i, c := range calls {
		v.put(line{Call: &i, Name: c.tool})
	}
	for i, c := range calls {
		v.arguments(i, c.args[:len(c.args)/2])
	}
	for i, c := range calls {
		v.arguments(i, c.args[len(c.args)/2:])
	}
}

func (v *voice) arguments(i int, text string) {
	if text != "" {
		v.put(line{Call: &i, Args: text})
	}
}
