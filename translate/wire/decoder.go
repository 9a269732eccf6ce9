package wire

import (
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Measurer is a decoder or a Rewriter that reports usage and timings before the end of an answer. The usage is zero if it is unknown.
type Measurer interface {
	Figures() (translate.Usage, translate.Timings)
}

// Limited is a decoder of answers that may be longer than what was asked for.
type Limited interface {
	// Limit is told how many tokens were asked for, before the first Feed; 0 or less: as many as there are.
	Limit(tokens int)
}

// Decoder decodes the client's answer to a chat: it ends before the first stop string, and after the first call if the client wants
// no more, has no calls if there are no tools, and is a call if it must be one. Engines support stop strings, too, but also find them in the model's thinking and in its
// calls.
func Decoder(e Engine, chat *request.Chat) translate.Decoder { return DecoderOf(e, chat, e.Decoder()) }

// DecoderOf is like [Decoder]. decoder decodes the engine's answer.
func DecoderOf(e Engine, chat *request.Chat, decoder translate.Decoder) translate.Decoder {
	if chat.Forced {
		d := &forcedDecoder{}
		d.inner, d.event = decoder, d.take
		if chat.Limit > 0 {
			d.call.limit = request.MaxCallTokens
		}
		return keeping(d, chat)
	}
	readsCalls := ReadsCalls(e, chat)
	if writer, ok := e.(CallWriter); ok && writer.WritesCalls() && chat.Either != nil {
		d := &forcedDecoder{}
		d.inner, d.event, d.call.tools = decoder, d.take, chat.Either.Tools
		decoder = d
	} else if readsCalls {
		decoder = newCallTextDecoder(decoder)
	}
	_, limits := e.(CallLimiter)
	if chat.NoTools && !limits {
		decoder = &noCallDecoder{inner: decoder}
	}
	if len(chat.Stops) > 0 {
		decoder = newStopDecoder(decoder, chat.Stops, chat.Logprobs)
	}
	if chat.SingleCall && (readsCalls || !limits) {
		decoder = newSingleDecoder(decoder)
	}
	return keeping(decoder, chat)
}

// keeping returns a decoder of the same answer that ends with an error if the answer isn't what was promised.
func keeping(decoder translate.Decoder, chat *request.Chat) translate.Decoder {
	if chat.Promises.IsEmpty() {
		return decoder
	}
	return newPromisedDecoder(decoder, &chat.Promises)
}

// EndAtStops returns a decoder that ends an answer before the first stop string in its text.
func EndAtStops(d translate.Decoder, stops []string) translate.Decoder {
	if len(stops) == 0 {
		return d
	}
	return newStopDecoder(d, stops, false)
}

// bounded is the common part of the decoders below.
type bounded struct {
	inner translate.Decoder
	tally translate.Tally
	last  []translate.Event // events before the Finish
	ended bool
	event func(ev translate.Event, emit func(translate.Event) error) error
}

func (b *bounded) Feed(p []byte, emit func(translate.Event) error) error {
	if b.ended {
		return nil
	}
	return b.inner.Feed(p, func(ev translate.Event) error { return b.pass(ev, emit) })
}

func (b *bounded) Close(emit func(translate.Event) error) error {
	if b.ended {
		return nil
	}
	err := b.inner.Close(func(ev translate.Event) error { return b.pass(ev, emit) })
	if errors.Is(err, translate.ErrCut) {
		return nil
	}
	return err
}

func (b *bounded) pass(ev translate.Event, emit func(translate.Event) error) error {
	if b.ended {
		return nil
	}
	b.tally.Add(ev)
	return b.event(ev, emit)
}

// hold keeps usage, timings and stop reason until the end, and reports whether ev is one of them.
func (b *bounded) hold(ev translate.Event) bool {
	switch ev.(type) {
	case translate.Usage, translate.Timings, translate.Stop:
		b.last = append(b.last, ev)
		return true
	default:
		return false
	}
}

// end emits the events that are held back and the last event.
func (b *bounded) end(ev translate.Event, emit func(translate.Event) error) error {
	b.ended = true
	for _, held := range append(b.last, ev) {
		if err := emit(held); err != nil {
			return err
		}
	}
	return nil
}

// Figures returns the usage and timings so far.
func (b *bounded) Figures() (translate.Usage, translate.Timings) {
	if m, ok := b.inner.(Measurer); ok {
		if usage, timings := m.Figures(); usage.Completion > 0 {
			return usage, timings
		}
	}
	return b.tally.Usage(), translate.Timings{}
}

// figures returns the usage so far, and the timings if they are known.
func (b *bounded) figures() []translate.Event {
	usage, timings := b.Figures()
	if timings == (translate.Timings{}) { // the engine measures nothing
		return []translate.Event{usage}
	}
	return []translate.Event{usage, timings}
}

// cut ends the answer although the engine would go on. figures are those of the piece that it ends with.
func (b *bounded) cut(figures []translate.Event, reason translate.FinishReason, stop translate.Stop, emit func(translate.Event) error) error {
	b.last = figures
	if stop.Reason != "" {
		b.last = append(b.last, stop)
	}
	if err := b.end(translate.Finish{Reason: reason}, emit); err != nil {
		return err
	}
	return translate.ErrCut
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

func newStopDecoder(inner translate.Decoder, stops []string, logprobs bool) *stopDecoder {
	d := &stopDecoder{stops: newStopFinder(stops), logprobs: logprobs}
	d.inner, d.event = inner, d.take
	return d
}

// Feed decodes p. The log probabilities of a text come with it, or not at all: an engine that drafts has none of some tokens.
func (d *stopDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	if err := d.bounded.Feed(p, emit); err != nil || d.ended {
		return err
	}
	return d.flush(nil, emit)
}

func (d *stopDecoder) take(ev translate.Event, emit func(translate.Event) error) error {
	if probs, ok := ev.(translate.Logprobs); ok {
		return d.flush(probs.Content, emit)
	}
	if err := d.flush(nil, emit); err != nil {
		return err
	}
	if text, ok := ev.(translate.Text); ok {
		d.text, d.upTo = text.Text, nil
		if !d.logprobs {
			return d.flush(nil, emit)
		}
		d.upTo = d.figures()
		return nil
	}
	if d.hold(ev) {
		return nil
	}
	switch ev.(type) {
	case translate.Finish, translate.Fault:
		if err := d.release(emit); err != nil {
			return err
		}
		return d.end(ev, emit)
	case translate.Reasoning, translate.CallStart, translate.CallArgs, translate.CallDone:
		if err := d.release(emit); err != nil {
			return err
		}
	}
	return emit(ev)
}

// flush searches the waiting text for stop strings.
func (d *stopDecoder) flush(logprobs json.RawMessage, emit func(translate.Event) error) error {
	text := d.text
	d.text = ""
	if text == "" && logprobs == nil {
		return nil
	}
	for _, token := range gjson.ParseBytes(logprobs).Array() {
		d.tokens = append(d.tokens, json.RawMessage(token.Raw))
	}
	clear := d.stops.feed(text)
	switch {
	case d.stops.met != "":
		return d.stopAt(clear, emit)
	case len(d.stops.held) > 0: // the tokens of the held text are unknown
		if clear == "" {
			return nil
		}
		d.told += len(clear)
		return emit(translate.Text{Text: clear})
	default:
		return d.tell(clear, emit)
	}
}

// tell emits a text and the log probabilities of its tokens.
func (d *stopDecoder) tell(text string, emit func(translate.Event) error) error {
	if text != "" {
		if err := emit(translate.Text{Text: text}); err != nil {
			return err
		}
	}
	d.told = 0
	if len(d.tokens) == 0 {
		return nil
	}
	all := []byte{'['}
	for _, token := range d.tokens {
		all = append(jsonbody.AppendComma(all), token...)
	}
	d.tokens = nil
	return emit(translate.Logprobs{Content: append(all, ']')})
}

// release emits the held text, because the text ends or is interrupted.
func (d *stopDecoder) release(emit func(translate.Event) error) error {
	return d.tell(d.stops.rest(), emit)
}

// stopAt ends the answer before a stop string. Tokens that begin in the string or after it are left out.
func (d *stopDecoder) stopAt(text string, emit func(translate.Event) error) error {
	left := d.told + len(text)
	for i, token := range d.tokens {
		if left <= 0 {
			d.tokens = d.tokens[:i]
			break
		}
		left -= tokenLength(token)
	}
	if err := d.tell(text, emit); err != nil {
		return err
	}
	figures := d.upTo
	if figures == nil {
		figures = d.figures()
	}
	return d.cut(figures, translate.FinishStop, translate.Stop{Reason: translate.StopString, Text: d.stops.met}, emit)
}

// tokenLength returns the number of bytes of a token.
func tokenLength(token []byte) int {
	if bytes := gjson.GetBytes(token, "bytes"); bytes.IsArray() {
		return len(bytes.Array())
	}
	return len(gjson.GetBytes(token, "token").Str)
}

// forcedDecoder decodes an answer with the schema of [request.ForcedFormat] to a call. That of a [request.Either] may be text.
type forcedDecoder struct {
	bounded
	call callReader
}

func (d *forcedDecoder) take(ev translate.Event, emit func(translate.Event) error) error {
	if d.hold(ev) {
		return nil
	}
	switch ev := ev.(type) {
	case translate.Text:
		if err := d.call.feed(ev.Text, emit); err != nil || !d.call.isTooLong() {
			return err
		}
		if err := d.call.end(emit); err != nil {
			return err
		}
		return d.cut(d.figures(), translate.FinishLength, translate.Stop{}, emit)
	case translate.Logprobs:
		return d.call.logprobs(ev, emit)
	case translate.Finish:
		if err := d.call.end(emit); err != nil {
			return err
		}
		if ev.Reason == translate.FinishStop && d.call.state == afterCall {
			ev.Reason = translate.FinishToolCalls
		}
		return d.end(ev, emit)
	case translate.Fault:
		return d.end(ev, emit)
	default:
		return emit(ev)
	}
}
