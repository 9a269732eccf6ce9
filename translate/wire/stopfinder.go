package wire

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// stopFinder searches for stop strings in a text that comes in pieces. An engine would also find them in the model's thinking
// and in its calls.
//
// The result doesn't depend on the pieces: it is the string that ends first, and the longest of those that end there.
type stopFinder struct {
	stops []stopString
	held  []byte // end of the text that may be the start of a stop string
	met   string // the string found; empty if none
}

// stopString is a string to search for, with the algorithm of Knuth, Morris and Pratt.
type stopString struct {
	text   string
	back   []int // for each length of a matched prefix, the length of the next shorter one that ends at the same place
	length int   // of the prefix that the text ends with
}

func newStopFinder(stops []string) *stopFinder {
	f := &stopFinder{stops: make([]stopString, len(stops))}
	for i, text := range stops {
		s := stopString{text: text, back: make([]int, len(text)+1)}
		for n := 1; n < len(text); n++ {
			s.next(text[n])
			s.back[n+1] = s.length
		}
		s.length = 0
		f.stops[i] = s
	}
	return f
}

func (s *stopString) next(c byte) {
	for s.length > 0 && s.text[s.length] != c {
		s.length = s.back[s.length]
	}
	if s.text[s.length] == c {
		s.length++
	}
}

// feed adds a piece and returns the text that can be emitted. Text after a stop string is dropped.
func (f *stopFinder) feed(piece string) string {
	from := len(f.held)
	f.held = append(f.held, piece...)
	for at := from; at < len(f.held); at++ {
		for i := range f.stops {
			s := &f.stops[i]
			if s.next(f.held[at]); s.length == len(s.text) && len(s.text) > len(f.met) {
				f.met = s.text
			}
		}
		if f.met != "" {
			return f.take(at + 1 - len(f.met))
		}
	}
	longest := 0
	for i := range f.stops {
		longest = max(longest, f.stops[i].length)
	}
	return f.take(len(f.held) - longest)
}

func (f *stopFinder) take(n int) string {
	text := string(f.held[:n])
	f.held = append(f.held[:0], f.held[n:]...)
	return text
}

// rest returns the held text, because the text ends or is interrupted, and restarts the search.
func (f *stopFinder) rest() string {
	for i := range f.stops {
		f.stops[i].length = 0
	}
	if f.met != "" {
		return ""
	}
	return f.take(len(f.held))
}

// stopDecoder ends an answer before the first stop string in its text.
type stopDecoder struct {
	bounded
	stops    *stopFinder
	logprobs bool

	text   string            // waiting for its log probabilities
	upTo   []translate.Event // figures when the waiting text came
	tokens []json.RawMessage // log probabilities waiting for text that the finder holds back
	told   int               // number of bytes of tokens that have been emitted
}

// Feed decodes p. The log probabilities of a text come with it, or not at all: an engine that drafts has none of some tokens.
func (d *stopDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	if err := d.bounded.Feed(p, emit); err != nil || d.ended {
		return err
	}
	d.flush(nil)
	return d.Err()
}

func (d *stopDecoder) event(ev translate.Event) {
	if probs, ok := ev.(translate.Logprobs); ok {
		d.flush(probs.Content)
		return
	}
	if d.flush(nil); d.ended || d.hold(ev) {
		return
	}
	switch ev := ev.(type) {
	case translate.Text:
		if d.text, d.upTo = ev.Text, nil; d.logprobs {
			d.upTo = d.figures()
		} else {
			d.flush(nil)
		}
		return
	case translate.Finish, translate.Fault:
		d.tell(d.stops.rest())
		d.end(ev)
		return
	case translate.Reasoning, translate.CallStart, translate.CallArgs, translate.CallDone: // they interrupt the text
		d.tell(d.stops.rest())
	}
	d.Emit(ev)
}

func (d *stopDecoder) flush(logprobs json.RawMessage) {
	text := d.text
	d.text = ""
	if text == "" && logprobs == nil {
		return
	}
	for _, token := range gjson.ParseBytes(logprobs).Array() {
		d.tokens = append(d.tokens, json.RawMessage(token.Raw))
	}
	clear := d.stops.feed(text)
	switch {
	case d.stops.met != "":
		d.stopAt(clear)
	case len(d.stops.held) == 0:
		d.tell(clear)
	case clear != "": // the tokens of the held text are unknown
		d.told += len(clear)
		d.Emit(translate.Text{Text: clear})
	}
}

func (d *stopDecoder) tell(text string) {
	if text != "" {
		d.Emit(translate.Text{Text: text})
	}
	if d.told = 0; len(d.tokens) == 0 {
		return
	}
	all := []byte{'['}
	for _, token := range d.tokens {
		all = append(jsonbody.AppendComma(all), token...)
	}
	d.tokens = nil
	d.Emit(translate.Logprobs{Content: append(all, ']')})
}

// stopAt ends the answer before a stop string. Tokens that begin in the string or after it are left out.
func (d *stopDecoder) stopAt(text string) {
	left := d.told + len(text)
	for i, token := range d.tokens {
		if left <= 0 {
			d.tokens = d.tokens[:i]
			break
		}
		if bytes := gjson.GetBytes(token, "bytes"); bytes.IsArray() {
			left -= len(bytes.Array())
		} else {
			left -= len(gjson.GetBytes(token, "token").Str)
		}
	}
	d.tell(text)
	figures := d.upTo
	if figures == nil {
		figures = d.figures()
	}
	d.cut(figures, translate.FinishStop, translate.Stop{Reason: translate.StopString, Text: d.stops.met})
}
