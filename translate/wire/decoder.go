package wire

import (
	"errors"

	"github.com/lmcaddy/lmcaddy/translate"
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

// DecoderOf decodes the client's answer to a chat, of which decoder decodes the engine's: it ends before the first stop string, and after
// the first call if the client wants no more, has no calls if there are no tools, and is a call if it must be one. Engines support stop
// strings, too, but also find them in the model's thinking and in its calls.
func DecoderOf(e Engine, chat *request.Chat, decoder translate.Decoder) translate.Decoder {
	quirks, readsCalls := e.Quirks(), ReadsCalls(e, chat)
	switch {
	case chat.Forced:
		limit := 0
		if chat.Limit > 0 {
			limit = request.MaxCallTokens
		}
		return checked(over(decoder, &forcedDecoder{limit: limit}), chat)
	case quirks.WritesCalls && chat.Either != nil:
		decoder = over(decoder, &forcedDecoder{tools: chat.Either.Tools})
	case readsCalls:
		decoder = over(decoder, &callTextDecoder{})
	}
	if chat.NoTools && !quirks.LimitsCalls {
		decoder = over(decoder, &noCallDecoder{calls: map[int]*gatheredCall{}})
	}
	if len(chat.Stops) > 0 {
		decoder = over(decoder, &stopDecoder{stops: newStopFinder(chat.Stops), logprobs: chat.Logprobs})
	}
	if chat.SingleCall && (readsCalls || !quirks.LimitsCalls) {
		decoder = over(decoder, &singleDecoder{})
	}
	return checked(decoder, chat)
}

// checked returns a decoder of the same answer that ends with an error if the answer isn't what was promised.
func checked(decoder translate.Decoder, chat *request.Chat) translate.Decoder {
	if chat.Promises.IsEmpty() {
		return decoder
	}
	return over(decoder, &promisedDecoder{promises: &chat.Promises, calls: map[int]*gatheredCall{}})
}

// EndAtStops returns a decoder that ends an answer before the first stop string in its text.
func EndAtStops(d translate.Decoder, stops []string) translate.Decoder {
	if len(stops) == 0 {
		return d
	}
	return over(d, &stopDecoder{stops: newStopFinder(stops)})
}

// Filter is a decoder that changes the events of another one.
type Filter struct {
	translate.Emitter
	inner translate.Decoder
	each  func(translate.Event) error
}

// Init has take make what it emits of the events of another decoder.
func (f *Filter) Init(inner translate.Decoder, take func(translate.Event)) {
	f.inner = inner
	f.each = func(ev translate.Event) error {
		take(ev)
		return f.Err()
	}
}

// over returns a filter after it was told of which decoder's events it is to make its own.
func over[F interface {
	translate.Decoder
	Init(inner translate.Decoder, take func(translate.Event))
	event(translate.Event)
}](inner translate.Decoder, filter F) translate.Decoder {
	filter.Init(inner, filter.event)
	return filter
}

// Feed decodes p.
func (f *Filter) Feed(p []byte, emit func(translate.Event) error) error {
	f.Begin(emit)
	return f.inner.Feed(p, f.each)
}

// Close ends the stream.
func (f *Filter) Close(emit func(translate.Event) error) error {
	f.Begin(emit)
	return f.inner.Close(f.each)
}

// Figures returns the usage and timings so far, as the other decoder knows them.
func (f *Filter) Figures() (usage translate.Usage, timings translate.Timings) {
	if m, ok := f.inner.(Measurer); ok {
		return m.Figures()
	}
	return usage, timings
}

type bounded struct {
	Filter
	tally translate.Tally
	last  []translate.Event // events before the Finish
	ended bool
}

func (b *bounded) Init(inner translate.Decoder, take func(translate.Event)) {
	b.Filter.Init(inner, func(ev translate.Event) {
		if !b.ended {
			b.tally.Add(ev)
			take(ev)
		}
	})
}

func (b *bounded) Feed(p []byte, emit func(translate.Event) error) error {
	if b.ended {
		return nil
	}
	return b.Filter.Feed(p, emit)
}

func (b *bounded) Close(emit func(translate.Event) error) error {
	if b.ended {
		return nil
	}
	if err := b.Filter.Close(emit); !errors.Is(err, translate.ErrCut) {
		return err
	}
	return nil
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

func (b *bounded) end(ev translate.Event) {
	b.ended = true
	for _, held := range append(b.last, ev) {
		b.Emit(held)
	}
}

// Figures returns the usage and timings so far.
func (b *bounded) Figures() (translate.Usage, translate.Timings) {
	if usage, timings := b.Filter.Figures(); usage.Completion > 0 {
		return usage, timings
	}
	return b.tally.Usage(), translate.Timings{}
}

func (b *bounded) figures() []translate.Event {
	usage, timings := b.Figures()
	if timings == (translate.Timings{}) { // the engine measures nothing
		return []translate.Event{usage}
	}
	return []translate.Event{usage, timings}
}

// cut ends the answer although the engine would go on. figures are those of the piece that it ends with.
func (b *bounded) cut(figures []translate.Event, reason translate.FinishReason, stop translate.Stop) {
	b.last = figures
	if stop.Reason != "" {
		b.last = append(b.last, stop)
	}
	b.end(translate.Finish{Reason: reason})
	b.Cut()
}
