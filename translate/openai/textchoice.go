package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// TextAnswer is the answer to a request for text completions, streamed or in one piece: what its choices have in common.
type TextAnswer struct {
	head []byte // what all chunks and the body begin with
}

// NewTextAnswer begins an answer. Its id is "cmpl-…".
func NewTextAnswer(e Envelope) *TextAnswer {
	head := jsonbody.AppendJSON(nil, textHead{e.ID, "text_completion", e.Created, e.Model, e.Fingerprint})
	return &TextAnswer{head[:len(head)-1]}
}

// TextChoice is one choice of a TextAnswer. It is fed with the events of one upstream request.
type TextChoice struct {
	Index    int
	Answer   *TextAnswer
	Echo     string // the prompt, if the choice is to begin with it
	Top      int    // as Completion.Logprobs
	Empty    bool   // nothing is to be generated: what the engine says all the same is left out
	IsStream bool   // its chunks are all that is wanted; else it is gathered

	outcome  translate.Outcome
	text     strings.Builder
	held     string // text that waits for its log probabilities
	logprobs textLogprobs
	begun    bool
	offset   int // of the end of the text so far, in characters
	last     int // of the beginning of the last piece of it
	sum      float64
	tokens   int // that sum is of
}

// Append takes an event, and appends what a client that streams sees of it. The choice's last chunk, with the reason why
// it ended, isn't among it: see AppendFinish.
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

// Begin appends the prompt where it is to be echoed. It is for who can't wait for the first event; only once counts.
func (c *TextChoice) Begin(dst []byte) []byte {
	if c.begun {
		return dst
	}
	c.begun = true
	return c.appendPiece(dst, c.Echo)
}

func (c *TextChoice) appendText(dst []byte, text string) []byte {
	if c.Empty {
		return dst
	}
	if c.IsStream && c.Top >= 0 { // its log probabilities go into the same chunk
		dst = c.flush(dst)
		c.held = text
		return dst
	}
	return c.appendPiece(dst, text)
}

// flush appends a text whose log probabilities didn't come.
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
	c.last = c.offset // what comes without a text stands behind it
	if !c.IsStream || c.Top < 0 {
		return dst
	}
	return c.appendChunk(dst, text, all, "", nil)
}

// Total is the outcome of all candidates of a request, those that are no choices included. The candidates of each prompt
// stand together; the prompt counts once.
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

// Likelihood is the mean log probability of the choice's tokens, by which candidates are compared.
func (c *TextChoice) Likelihood() float64 {
	if c.tokens == 0 {
		return 0 // it ended at once, as surely as can be
	}
	return c.sum / float64(c.tokens)
}

// AppendFinish appends the last chunk of a choice that is streamed. more is further members of it, as an Extra makes them.
func (c *TextChoice) AppendFinish(dst, more []byte) []byte {
	return c.appendChunk(dst, "", nil, c.outcome.Reason, more)
}

func (c *TextChoice) appendChunk(dst []byte, text string, logprobs *textLogprobs, finish translate.FinishReason, more []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, c.Answer.head...)
	dst = append(dst, `,"choices":[{"index":`...)
	dst = append(dst, strconv.Itoa(c.Index)...)
	dst = append(dst, `,"text":`...)
	dst = jsonbody.AppendJSON(dst, text)
	dst = append(dst, `,"logprobs":`...)
	dst = jsonbody.AppendJSON(dst, logprobs)
	dst = append(dst, `,"finish_reason":`...)
	if finish == "" {
		dst = append(dst, "null"...)
	} else {
		dst = jsonbody.AppendJSON(dst, finish)
	}
	dst = append(dst, "}]"...)
	dst = appendMore(dst, more)
	return append(dst, "}\n\n"...)
}

// appendMore appends members to an object that is open and has some.
func appendMore(dst, more []byte) []byte {
	if len(more) == 0 {
		return dst
	}
	return append(append(dst, ','), more...)
}

// AppendUsage appends the chunk that ends a stream whose client wants the usage.
func (a *TextAnswer) AppendUsage(dst []byte, usage translate.Usage, more []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, a.head...)
	dst = append(dst, `,"choices":[],"usage":`...)
	dst = jsonbody.AppendJSON(dst, textUsageOf(usage))
	dst = appendMore(dst, more)
	return append(dst, "}\n\n"...)
}

// AppendDone appends the mark that ends a stream.
func (a *TextAnswer) AppendDone(dst []byte) []byte {
	return jsonbody.AppendFrame(dst, jsonbody.DoneMark)
}

// Body is the answer in one piece.
func (a *TextAnswer) Body(choices []*TextChoice, usage translate.Usage, more []byte) []byte {
	list := make([]textChoice, len(choices))
	for i, c := range choices {
		list[i] = textChoice{Index: i, Text: c.text.String(), Finish: c.outcome.Reason}
		if c.Top >= 0 {
			list[i].Logprobs = c.logprobs.orEmpty()
		}
	}
	body := append(bytes.Clone(a.head), `,"choices":`...)
	body = jsonbody.AppendJSON(body, list)
	body = append(body, `,"usage":`...)
	body = jsonbody.AppendJSON(body, textUsageOf(usage))
	return append(appendMore(body, more), '}')
}

type (
	textHead struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		Model       string `json:"model"`
		Fingerprint string `json:"system_fingerprint,omitempty"`
	}
	textChoice struct {
		Index    int                    `json:"index"`
		Text     string                 `json:"text"`
		Logprobs *textLogprobs          `json:"logprobs"`
		Finish   translate.FinishReason `json:"finish_reason"`
	}
	textUsage struct {
		Prompt     int              `json:"prompt_tokens"`
		Completion int              `json:"completion_tokens"`
		Total      int              `json:"total_tokens"`
		Details    textUsageDetails `json:"prompt_tokens_details"`
	}
	textUsageDetails struct {
		Cached int `json:"cached_tokens"`
	}
)

func textUsageOf(u translate.Usage) textUsage {
	return textUsage{u.Prompt, u.Completion, u.Prompt + u.Completion, textUsageDetails{u.Cached}}
}

var _ translate.Encoder = (*TextChoice)(nil)
