package wire

import (
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
	w := &withoutSaid{inner: d}
	for _, text := range []string{said.Reasoning, said.Text} {
		if text = strings.TrimSpace(text); text != "" {
			w.said = append(w.said, text)
		}
	}
	return w
}

// withoutSaid holds the text back until what was said has come.
type withoutSaid struct {
	inner translate.Decoder
	said  []string // texts that are left to come, in order
	held  string
	from  int // position in held after the last of them
}

func (d *withoutSaid) Feed(p []byte, emit func(translate.Event) error) error {
	return d.inner.Feed(p, func(ev translate.Event) error { return d.take(ev, emit) })
}

func (d *withoutSaid) Close(emit func(translate.Event) error) error {
	return d.inner.Close(func(ev translate.Event) error { return d.take(ev, emit) })
}

// Figures returns those of the engine's decoder.
func (d *withoutSaid) Figures() (u translate.Usage, t translate.Timings) {
	if m, ok := d.inner.(Measurer); ok {
		return m.Figures()
	}
	return u, t
}

func (d *withoutSaid) take(ev translate.Event, emit func(translate.Event) error) error {
	text, ok := ev.(translate.Text)
	if len(d.said) == 0 {
		return emit(ev)
	}
	if !ok {
		switch ev.(type) {
		case translate.Usage, translate.Finish, translate.Fault: // it is something else
			d.said = nil
			if d.held != "" {
				if err := emit(translate.Text{Text: d.held}); err != nil {
					return err
				}
			}
		}
		return emit(ev)
	}
	d.held += text.Text
	for len(d.said) > 0 {
		at := strings.Index(d.held[d.from:], d.said[0])
		if at < 0 {
			return nil
		}
		d.from += at + len(d.said[0])
		d.said = d.said[1:]
	}
	if rest := d.held[d.from:]; rest != "" {
		return emit(translate.Text{Text: rest})
	}
	return nil
}
