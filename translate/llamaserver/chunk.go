package llamaserver

import (
	"bytes"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// chunk is one chunk of llama-server's chat stream, its parts found in one pass. A part that is absent, or null, is
// nil. The parts are slices of the chunk.
type chunk struct {
	choice   bool   // there is one; the chunk with the usage has none
	delta    []byte // an object
	finish   []byte // a string
	logprobs []byte

	// Of the delta.
	thinking  int // where the name reasoning_content begins in it, at its quote; negative: it isn't there
	reasoning []byte
	content   []byte
	calls     []byte // an array

	usage, timings, progress, verbose, fault []byte

	others int // what we don't know of: the first fields of other
	other  [4][]byte
}

// parse reads a chunk. It is false for what isn't a JSON object whose parts are of the right kinds.
func (c *chunk) parse(data []byte) bool {
	*c = chunk{thinking: -1}
	s := jsonbody.Scanner{Data: data, Lenient: true}
	s.Space()
	o := objectScan{s: &s}
	for o.next() {
		if string(o.key) == "choices" {
			if !c.parseChoices(&s) {
				return false
			}
			continue
		}
		value := o.value(1)
		switch string(o.key) {
		case "usage":
			c.usage = notNull(value)
		case "timings":
			c.timings = notNull(value)
		case "prompt_progress":
			c.progress = notNull(value)
		case "__verbose":
			c.verbose = notNull(value)
		case "error":
			c.fault = notNull(value)
		default:
			if c.others < len(c.other) && !isEnvelope(o.key) {
				c.other[c.others] = data[o.from:s.Pos]
				c.others++
			}
		}
	}
	s.Space()
	return !o.bad && s.Pos == len(data)
}

// llamaEnvelope are the fields that we write ourselves.
func isEnvelope(key []byte) bool {
	switch string(key) {
	case "id", "object", "created", "model", "system_fingerprint":
		return true
	default:
		return false
	}
}

// parseChoices reads the first choice. There are no others, since each is asked for by itself.
func (c *chunk) parseChoices(s *jsonbody.Scanner) bool {
	if !s.Take('[') {
		return false
	}
	if s.Space(); s.Take(']') {
		return true
	}
	c.choice = true
	o := objectScan{s: s}
	for o.next() {
		switch string(o.key) {
		case "delta":
			if !c.parseDelta(s) {
				return false
			}
		case "finish_reason":
			c.finish = notNull(o.value(3))
		case "logprobs":
			c.logprobs = notNull(o.value(3))
		default:
			o.value(3)
		}
	}
	s.Space()
	return !o.bad && (c.finish == nil || c.finish[0] == '"') && s.Take(']')
}

func (c *chunk) parseDelta(s *jsonbody.Scanner) bool {
	begin := s.Pos
	o := objectScan{s: s}
	for o.next() {
		value := o.value(4)
		switch string(o.key) {
		case "reasoning_content":
			c.thinking = o.from - begin
			c.reasoning = notNull(value)
		case "content":
			c.content = notNull(value)
		case "tool_calls":
			c.calls = notNull(value)
		}
	}
	c.delta = s.Data[begin:s.Pos]
	return !o.bad && (c.calls == nil || c.calls[0] == '[')
}

func notNull(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

// objectScan goes through the fields of an object, at whose brace the scanner stands.
type objectScan struct {
	s     *jsonbody.Scanner
	key   []byte // of the field, as it is written between its quotes
	from  int    // where its opening quote is
	begun bool
	bad   bool // it is no object, or no JSON
}

// next goes to the next field's value, which has to be read before the next call.
func (o *objectScan) next() bool {
	s := o.s
	if o.bad {
		return false
	}
	if !o.begun {
		o.begun = true
		if !s.Take('{') {
			o.bad = true
			return false
		}
		if s.Space(); s.Take('}') {
			return false
		}
	} else {
		if s.Space(); s.Take('}') {
			return false
		}
		if !s.Take(',') {
			o.bad = true
			return false
		}
		s.Space()
	}
	o.from = s.Pos
	if s.Key() != nil {
		o.bad = true
		return false
	}
	o.key = s.Data[o.from+1 : s.Pos-1]
	o.bad = s.Colon() != nil
	return !o.bad
}

// value reads over the field's value, which stands in so many brackets.
func (o *objectScan) value(depth int) []byte {
	begin := o.s.Pos
	if o.s.Value(depth) != nil {
		o.bad = true
		return nil
	}
	return o.s.Data[begin:o.s.Pos]
}

// oneLine is JSON that came in several lines of an event, in one.
func oneLine(json []byte) []byte {
	if bytes.IndexByte(json, '\n') < 0 {
		return json
	}
	return bytes.ReplaceAll(json, []byte{'\n'}, []byte{' '})
}
