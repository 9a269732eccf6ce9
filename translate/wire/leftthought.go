package wire

import (
	"bytes"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

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
		return &leftThoughtDecoder{inner: decoder, end: end}
	}
	return decoder
}

// leftThoughtDecoder decodes an answer whose text begins with a thought. White space around the thought belongs neither to it nor to the text.
type leftThoughtDecoder struct {
	inner  translate.Decoder
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

func (d *leftThoughtDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	return d.inner.Feed(p, func(ev translate.Event) error { return d.take(ev, emit) })
}

func (d *leftThoughtDecoder) Close(emit func(translate.Event) error) error {
	return d.inner.Close(func(ev translate.Event) error { return d.take(ev, emit) })
}

// Figures returns the usage and timings so far.
func (d *leftThoughtDecoder) Figures() (usage translate.Usage, timings translate.Timings) {
	if m, ok := d.inner.(Measurer); ok {
		usage, timings = m.Figures()
		usage.Reasoning += d.tokens
	}
	return usage, timings
}

func (d *leftThoughtDecoder) take(ev translate.Event, emit func(translate.Event) error) error {
	switch ev := ev.(type) {
	case translate.Text:
		return d.text(ev.Text, emit)
	case translate.Prompt, translate.Logprobs:
		return emit(ev)
	}
	if d.state < afterThought { // it has no end
		if err := d.think(len(bytes.TrimRight(d.held, whiteSpace)), emit); err != nil {
			return err
		}
		d.state = inAnswer
	}
	if usage, ok := ev.(translate.Usage); ok {
		usage.Reasoning += d.tokens
		ev = usage
	}
	return emit(ev)
}

func (d *leftThoughtDecoder) text(text string, emit func(translate.Event) error) error {
	if d.state < afterThought {
		d.tokens++
		d.held = append(d.held, text...)
		at := bytes.Index(d.held, []byte(d.end))
		if at < 0 {
			return d.think(len(d.held)-mayBegin(d.held, d.end), emit)
		}
		text = string(d.held[at+len(d.end):])
		if err := d.think(len(bytes.TrimRight(d.held[:at], whiteSpace)), emit); err != nil {
			return err
		}
		d.state = afterThought
	}
	if d.state == afterThought {
		if text = strings.TrimLeft(text, whiteSpace); text == "" {
			return nil
		}
		d.state = inAnswer
	}
	return emit(translate.Text{Text: text})
}

// think emits the first n held bytes as part of the thought.
func (d *leftThoughtDecoder) think(n int, emit func(translate.Event) error) error {
	thought := string(d.held[:n])
	d.held = append(d.held[:0], d.held[n:]...)
	if d.state == beforeThought {
		thought = strings.TrimLeft(thought, whiteSpace)
	}
	if thought == "" {
		return nil
	}
	d.state = inThought
	return emit(translate.Reasoning{Text: thought})
}

var _ Measurer = (*leftThoughtDecoder)(nil)
