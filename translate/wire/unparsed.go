package wire

import (
	"bytes"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Unparser is an engine that parses what the model says, and fails if it can't. It can also be asked for the model's words.
type Unparser interface {
	// Template returns the request for the prompt that a chat's template makes. ok is false if the answer can't be had unparsed.
	Template(body *jsonbody.Body, chat *request.Chat) (_ Upstream, ok bool)

	// Templated parses the response.
	Templated(answer []byte) (prompt string, _ *translate.Error)

	// Unparsed returns the request for the answer after a prompt, and UnparsedDecoder decodes it: all of it is text.
	Unparsed(body *jsonbody.Body, chat *request.Chat, choice int, prompt string) Upstream
	UnparsedDecoder() translate.Decoder
}

// WithoutSaid returns a decoder of an unparsed answer that leaves out its beginning, up to the end of what the client has of it. If the
// answer doesn't have that, it is left as it is.
func WithoutSaid(d translate.Decoder, said *Said) translate.Decoder {
	w := &withoutSaid{}
	w.Init(d, w.event)
	for _, text := range []string{said.Reasoning, said.Text} {
		if text = strings.TrimSpace(text); text != "" {
			w.said = append(w.said, text)
		}
	}
	return w
}

type withoutSaid struct {
	Filter
	said []string // texts that are left to come, in order
	held string
	from int // position in held after the last of them
}

func (d *withoutSaid) event(ev translate.Event) {
	if len(d.said) == 0 {
		d.Emit(ev)
		return
	}
	switch ev := ev.(type) {
	case translate.Usage, translate.Finish, translate.Fault: // the answer is something else
		if d.said = nil; d.held != "" {
			d.Emit(translate.Text{Text: d.held})
		}
		d.Emit(ev)
	case translate.Text:
		d.held += ev.Text
		for len(d.said) > 0 {
			at := strings.Index(d.held[d.from:], d.said[0])
			if at < 0 {
				return
			}
			d.from += at + len(d.said[0])
			d.said = d.said[1:]
		}
		if rest := d.held[d.from:]; rest != "" {
			d.Emit(translate.Text{Text: rest})
		}
	default:
		d.Emit(ev)
	}
}

// ThoughtLeaver is an engine that leaves the thoughts of some models in the text of their answers.
type ThoughtLeaver interface {
	// ThoughtEnd returns the mark that ends the thought with which the text of the answer to a chat begins; empty: it begins with none.
	ThoughtEnd(body *jsonbody.Body, chat *request.Chat) string
}

// ThoughtEnd is that of an engine which may be a [ThoughtLeaver].
func ThoughtEnd(e Engine, body *jsonbody.Body, chat *request.Chat) string {
	if leaver, ok := e.(ThoughtLeaver); ok {
		return leaver.ThoughtEnd(body, chat)
	}
	return ""
}

// ChatDecoder returns the decoder of an engine's answer to a chat, which takes a thought out of the text if the engine leaves it there.
func ChatDecoder(e Engine, body *jsonbody.Body, chat *request.Chat) translate.Decoder {
	decoder := e.Decoder()
	if limited, ok := decoder.(Limited); ok {
		limited.Limit(chat.TokenLimit(body))
	}
	if end := ThoughtEnd(e, body, chat); end != "" {
		d := &leftThoughtDecoder{end: end}
		d.Init(decoder, d.event)
		return d
	}
	return decoder
}

// leftThoughtDecoder decodes an answer whose text begins with a thought. White space around it belongs neither to it nor to the text.
type leftThoughtDecoder struct {
	Filter
	end    string // the mark
	state  thoughtState
	held   []byte // what may be the mark, or white space before it
	tokens int    // of the thought, one for each piece of it
}

type thoughtState uint8

const (
	beforeThought thoughtState = iota
	inThought
	afterThought
	inAnswer
)

// Figures returns the usage and timings so far.
func (d *leftThoughtDecoder) Figures() (usage translate.Usage, timings translate.Timings) {
	usage, timings = d.Filter.Figures()
	usage.Reasoning += d.tokens
	return usage, timings
}

func (d *leftThoughtDecoder) event(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Text:
		d.text(ev.Text)
		return
	case translate.Prompt, translate.Logprobs:
		d.Emit(ev)
		return
	}
	if d.state < afterThought { // it has no end
		d.think(len(bytes.TrimRight(d.held, whiteSpace)))
		d.state = inAnswer
	}
	if usage, ok := ev.(translate.Usage); ok {
		usage.Reasoning += d.tokens
		ev = usage
	}
	d.Emit(ev)
}

func (d *leftThoughtDecoder) text(text string) {
	if d.state < afterThought {
		d.tokens++
		d.held = append(d.held, text...)
		at := bytes.Index(d.held, []byte(d.end))
		if at < 0 {
			d.think(len(d.held) - mayBegin(d.held, d.end))
			return
		}
		text = string(d.held[at+len(d.end):])
		d.think(len(bytes.TrimRight(d.held[:at], whiteSpace)))
		d.state = afterThought
	}
	if d.state == afterThought {
		if text = strings.TrimLeft(text, whiteSpace); text == "" {
			return
		}
		d.state = inAnswer
	}
	d.Emit(translate.Text{Text: text})
}

func (d *leftThoughtDecoder) think(n int) {
	thought := string(d.held[:n])
	d.held = append(d.held[:0], d.held[n:]...)
	if d.state == beforeThought {
		thought = strings.TrimLeft(thought, whiteSpace)
	}
	if thought != "" {
		d.state = inThought
		d.Emit(translate.Reasoning{Text: thought})
	}
}
