package llamaserver

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// chunk is a chunk of llama-server's chat stream, parsed in one pass. Its parts are slices of it, nil if they are absent or null.
type chunk struct {
	choice   bool   // there is a choice; the chunk with the usage has none
	delta    []byte // an object
	finish   []byte // a string
	logprobs []byte

	// Parts of the delta.
	thinking  int // position of the opening quote of the name reasoning_content; negative if absent
	reasoning []byte
	content   []byte
	calls     []byte // an array

	usage, timings, progress, verbose, fault []byte

	others int // number of unknown fields in other
	other  [4][]byte
}

// parse parses a chunk. It returns false if data isn't a JSON object or its parts have wrong types.
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
			if c.others < len(c.other) && !slices.Contains(envelope, string(o.key)) {
				c.other[c.others] = data[o.from:s.Pos]
				c.others++
			}
		}
	}
	s.Space()
	return !o.bad && s.Pos == len(data)
}

// envelope are the fields that the client's dialect writes.
var envelope = []string{"id", "object", "created", "model", "system_fingerprint"}

// parseChoices parses the only choice: each choice is a request of its own.
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

// objectScan iterates over the fields of the object at the scanner's position.
type objectScan struct {
	s     *jsonbody.Scanner
	key   []byte // of the field, still escaped
	from  int    // position of its opening quote
	begun bool
	bad   bool // not a valid object
}

// next advances to the value of the next field, which must be read before the next call.
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

func (o *objectScan) value(depth int) []byte {
	begin := o.s.Pos
	if o.s.Value(depth) != nil {
		o.bad = true
		return nil
	}
	return o.s.Data[begin:o.s.Pos]
}

// likeness has the bytes around the text of the last plain chunk, of which most chunks differ only in their text. They needn't be parsed.
type likeness struct {
	kept          []byte
	before, after []byte // its parts
	isTimed       bool   // timings follow after
}

// learn keeps the bytes around the text of a chunk, if it is plain: it has a piece of text, maybe timings, and nothing else to tell.
func (l *likeness) learn(data []byte, c *chunk) {
	if c.content == nil || len(c.delta) != len(`{"content":}`)+len(c.content) || c.finish != nil || c.logprobs != nil ||
		c.usage != nil || c.verbose != nil || c.others > 0 {
		return
	}
	at := cap(data) - cap(c.content) // content is a part of data, unless the chunk had to be copied
	if at < 0 || at+len(c.content) > len(data) || &data[at] != &c.content[0] {
		return
	}
	end := len(data)
	if l.isTimed = c.timings != nil; l.isTimed { // timings differ from chunk to chunk
		if end -= len(c.timings) + len("}"); end <= at+len(c.content) || !bytes.Equal(data[end:len(data)-1], c.timings) {
			l.before = nil
			return
		}
	}
	l.kept = append(slices.Grow(l.kept[:0], end-len(c.content)), data[:at]...)
	l.kept = append(l.kept, data[at+len(c.content):end]...)
	l.before, l.after = l.kept[:at], l.kept[at:]
}

// match returns the text of a chunk that is like the one that was learnt, as JSON, and its timings, if it has some.
func (l *likeness) match(data []byte) (text, timings []byte, ok bool) {
	if len(l.before) == 0 || len(data) < len(l.before)+len(l.after)+2 || !bytes.HasPrefix(data, l.before) {
		return nil, nil, false
	}
	text = data[len(l.before):]
	s := jsonbody.Scanner{Data: text, Lenient: true}
	if text[0] != '"' || s.Str() != nil {
		return nil, nil, false
	}
	text, rest := text[:s.Pos], text[s.Pos:]
	rest, ok = bytes.CutPrefix(rest, l.after)
	switch {
	case !ok:
		return nil, nil, false
	case l.isTimed:
		inner, isEnd := bytes.CutSuffix(rest, []byte("}}")) // of a flat object, and of the chunk
		isFlat := isEnd && inner[0] == '{' && bytes.IndexByte(inner[1:], '{') < 0 && bytes.IndexByte(inner, '}') < 0
		return text, rest[:max(0, len(rest)-len("}"))], isFlat
	default:
		return text, nil, len(rest) == 0
	}
}

// timings are an engine's measurements of an answer, as the member "timings" of a chunk has them.
type timings struct {
	told                      translate.Timings
	cached, prompt, predicted int  // tokens
	isCounted                 bool // predicted is known
}

func parseTimings(value []byte) timings {
	o := jsonbody.ObjectOf(value)
	return timings{
		told: translate.Timings{
			PromptMillis:       measured(o.Get("prompt_ms")),
			PredictedMillis:    measured(o.Get("predicted_ms")),
			PredictedPerSecond: measured(o.Get("predicted_per_second")),
			DraftTokens:        counted(o.Get("draft_n")),
			DraftAccepted:      counted(o.Get("draft_n_accepted")),
		},
		cached: counted(o.Get("cache_n")), prompt: counted(o.Get("prompt_n")), predicted: counted(o.Get("predicted_n")),
		isCounted: isNumber(o.Get("predicted_n")),
	}
}

func (t *timings) usage() translate.Usage {
	return translate.Usage{Prompt: t.cached + t.prompt, Cached: t.cached, Completion: t.predicted}
}

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// measured returns a number that isn't negative. It is 0 for any other value, and for one that JSON can't represent.
func measured(value []byte) float64 {
	if !isNumber(value) {
		return 0
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func counted(value []byte) int { return int(min(measured(value), math.MaxInt32)) }

// thoughtTokens counts the tokens of the model's thinking. Each piece comes with the number of tokens generated so far; a piece
// may have several if they form one character. The number of tokens of the tag that opens the thinking is unknown, so the first
// piece counts at most as many tokens as it has bytes, and one if it is ASCII. Without that number, each piece counts as one
// token.
type thoughtTokens struct {
	count     int
	generated int  // tokens reported last
	isOpen    bool // the last piece was thinking
}

func (t *thoughtTokens) note(c *chunk) {
	told := gjson.GetBytes(c.timings, "predicted_n")
	before, isTold := t.generated, told.Type == gjson.Number
	isBeyondASCII := func(r rune) bool { return r >= utf8.RuneSelf }
	if isTold {
		t.generated = max(before, counted([]byte(told.Raw)))
	}
	switch size := len(c.reasoning) - len(`""`); {
	case size > 0 && c.reasoning[0] == '"':
		switch {
		case !isTold:
			t.count++
		case t.isOpen:
			t.count += t.generated - before
		case !bytes.Contains(c.reasoning, []byte(`\u`)) && !bytes.ContainsFunc(c.reasoning, isBeyondASCII):
			t.count++
		default:
			t.count += min(t.generated-before, size)
		}
		t.isOpen = true
	case c.calls != nil || len(c.content) > len(`""`):
		t.isOpen = false
	}
}
