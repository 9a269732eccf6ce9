package openai

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// TextChoice encodes the events of one upstream request as a choice of a TextAnswer.
type TextChoice struct {
	Index    int
	Answer   *TextAnswer
	Echo     string // the prompt, if the choice begins with it
	Top      int    // as Completion.Logprobs
	Empty    bool   // the client wants no tokens: those that the engine generates are left out
	IsStream bool   // append chunks; otherwise gather the text

	outcome  translate.Outcome
	text     strings.Builder
	held     string // text waiting for its log probabilities
	logprobs textLogprobs
	begun    bool
	offset   int // length of the text so far, in characters
	last     int // offset of the last piece of text
	sum      float64
	tokens   int // number of tokens in sum
}

// Begin appends the prompt if it is echoed. Append calls it if the caller hasn't.
func (c *TextChoice) Begin(dst []byte) []byte {
	if c.begun {
		return dst
	}
	c.begun = true
	return c.appendPiece(dst, c.Echo)
}

// Append encodes an event and appends its chunks, if the client streams. The last chunk of the choice, with the finish reason,
// is appended by AppendFinish.
func (c *TextChoice) Append(dst []byte, ev translate.Event) []byte {
	switch ev := ev.(type) {
	case translate.Text:
		dst = c.Begin(dst)
		return c.appendText(dst, ev.Text)
	case translate.Logprobs:
		dst = c.Begin(dst)
		return c.appendLogprobs(dst, ev.Content)
	case translate.Usage:
		if c.Empty {
			ev.Completion = 0
		}
		c.outcome.Note(ev)
	case translate.Finish:
		c.outcome.Note(ev)
		return c.flush(c.Begin(dst))
	default:
		c.outcome.Note(ev)
	}
	return dst
}

// AppendFinish appends the last chunk of a streamed choice. more has additional members, as returned by an Extra.
func (c *TextChoice) AppendFinish(dst, more []byte) []byte {
	return c.appendChunk(dst, "", nil, c.outcome.Reason, more)
}

// Likelihood returns the mean log probability of the tokens, by which candidates are ranked.
func (c *TextChoice) Likelihood() float64 {
	if c.tokens == 0 {
		return 0 // an immediate end is certain
	}
	return c.sum / float64(c.tokens)
}

// Total returns the outcome of all candidates of a request, including those that don't become choices. The candidates of a
// prompt are adjacent, each of them in number; their prompt counts once.
func Total(candidates []*TextChoice, each int) *translate.Outcome {
	var all translate.Outcome
	for i, c := range candidates {
		prompt := all.Usage
		all.Add(&c.outcome)
		if i > 0 && i%each == 0 {
			all.Usage.Prompt = prompt.Prompt + c.outcome.Usage.Prompt
			all.Usage.Cached = prompt.Cached + c.outcome.Usage.Cached
		}
	}
	return &all
}

func (c *TextChoice) appendText(dst []byte, text string) []byte {
	if c.Empty {
		return dst
	}
	if c.IsStream && c.Top >= 0 { // its log probabilities belong to the same chunk
		dst = c.flush(dst)
		c.held = text
		return dst
	}
	return c.appendPiece(dst, text)
}

func (c *TextChoice) flush(dst []byte) []byte {
	held := c.held
	c.held = ""
	return c.appendPiece(dst, held)
}

func (c *TextChoice) appendPiece(dst []byte, text string) []byte {
	if text == "" {
		return dst
	}
	c.advance(text)
	if c.IsStream {
		return c.appendChunk(dst, text, nil, "", nil)
	}
	c.text.WriteString(text)
	return dst
}

func (c *TextChoice) advance(text string) {
	c.last = c.offset
	c.offset += utf8.RuneCountInString(text)
}

func (c *TextChoice) appendLogprobs(dst []byte, content json.RawMessage) []byte {
	if c.Empty {
		return dst
	}
	text := c.held
	c.held = ""
	if text != "" {
		c.advance(text)
	}
	all := &c.logprobs
	if c.IsStream {
		all = &textLogprobs{}
	}
	before := len(all.Tokens)
	c.sum += all.add(content, max(0, c.Top), c.last)
	c.tokens += len(all.Tokens) - before
	c.last = c.offset // tokens without a text come after it
	if !c.IsStream || c.Top < 0 {
		return dst
	}
	return c.appendChunk(dst, text, all, "", nil)
}

func (c *TextChoice) appendChunk(dst []byte, text string, logprobs *textLogprobs, finish translate.FinishReason, more []byte) []byte {
	dst = append(append(append(dst, "data: "...), c.Answer.head...), `,"choices":[{"index":`...)
	dst = jsonbody.AppendString(append(strconv.AppendInt(dst, int64(c.Index), 10), `,"text":`...), text)
	dst = jsonbody.AppendJSON(append(dst, `,"logprobs":`...), logprobs)
	dst = jsonbody.AppendJSON(append(dst, `,"finish_reason":`...), jsonbody.OrNull(string(finish)))
	return append(appendMore(append(dst, "}]"...), more), "}\n\n"...)
}

// textLogprobs are the log probabilities of a text completion, in parallel lists.
type textLogprobs struct {
	Tokens  []string      `json:"tokens"`
	Each    []json.Number `json:"token_logprobs"`
	Top     []textTop     `json:"top_logprobs"`
	Offsets []int         `json:"text_offset"` // in characters, from the start of the choice's text
}

// textTop has the likeliest tokens at one position: an object with the tokens as keys.
type textTop = json.RawMessage

// add appends the log probabilities of a Logprobs event whose text begins at offset, and returns their sum. At each position
// it lists the top likeliest tokens and the chosen token.
func (l *textLogprobs) add(content json.RawMessage, top, offset int) (sum float64) {
	gjson.ParseBytes(content).ForEach(func(_, item gjson.Result) bool {
		token, p := item.Get("token").Str, item.Get("logprob")
		l.Tokens = append(l.Tokens, token)
		l.Each = append(l.Each, jsonbody.Logprob(p))
		l.Top = append(l.Top, likeliest(item, top))
		l.Offsets = append(l.Offsets, offset)
		offset += utf8.RuneCountInString(token)
		sum += p.Num
		return true
	})
	return sum
}

func likeliest(item gjson.Result, top int) textTop {
	out := []byte{'{'}
	seen := map[string]bool{}
	add := func(v gjson.Result) {
		token := v.Get("token").Str
		if seen[token] { // tokens that are parts of a character have the same text
			return
		}
		seen[token] = true
		out = jsonbody.AppendComma(out)
		out = append(jsonbody.AppendJSON(out, token), ':')
		out = append(out, jsonbody.Logprob(v.Get("logprob"))...)
	}
	for i, v := range item.Get("top_logprobs").Array() {
		if i >= top {
			break
		}
		add(v)
	}
	if item.Get("token").Str != "" { // a stop string may have removed the text of the chosen token
		add(item)
	}
	return append(out, '}')
}
