package translate

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// say tells of a piece of the answer, as far as it is known to belong to it.
func (d *llamaDecoder) say(text string, logprobs []byte, emit func(Event) error) error {
	if d.forced != nil {
		if text == "" {
			return nil
		}
		if err := d.forced.feed(text, emit); err != nil || !d.forced.isTooLong() {
			return err
		}
		if err := d.forced.end(emit); err != nil {
			return err
		}
		return d.cut(FinishLength, emit)
	}
	probs := gjson.GetBytes(logprobs, "content")
	if d.stops == nil {
		if text != "" {
			if err := emit(Text{text}); err != nil {
				return err
			}
		}
		if probs.IsArray() {
			return emit(Logprobs{json.RawMessage(probs.Raw)})
		}
		return nil
	}
	for _, token := range probs.Array() {
		d.probs = append(d.probs, json.RawMessage(token.Raw))
	}
	told := d.stops.feed(text)
	switch {
	case d.stops.met != "":
		return d.stopAt(told, emit)
	case len(d.stops.held) > 0: // the tokens aren't told apart from those that are held back
		if told == "" {
			return nil
		}
		d.probsTold += len(told)
		return emit(Text{told})
	default:
		return d.tell(told, emit)
	}
}

// tell emits a text and the log probabilities of all tokens up to its end.
func (d *llamaDecoder) tell(text string, emit func(Event) error) error {
	if text != "" {
		if err := emit(Text{text}); err != nil {
			return err
		}
	}
	d.probsTold = 0
	if len(d.probs) == 0 {
		return nil
	}
	all := []byte{'['}
	for _, token := range d.probs {
		all = append(appendComma(all), token...)
	}
	d.probs = nil
	return emit(Logprobs{append(all, ']')})
}

// release emits what was held back, since the text is interrupted or at its end.
func (d *llamaDecoder) release(emit func(Event) error) error {
	if d.stops == nil || d.ended {
		return nil
	}
	return d.tell(d.stops.rest(), emit)
}

// stopAt ends the answer before a stop string. Tokens that begin within the string, or after it, aren't told.
func (d *llamaDecoder) stopAt(told string, emit func(Event) error) error {
	left := d.probsTold + len(told)
	for i, token := range d.probs {
		if left <= 0 {
			d.probs = d.probs[:i]
			break
		}
		left -= tokenLength(token)
	}
	if err := d.tell(told, emit); err != nil {
		return err
	}
	d.stop = Stop{StopString, d.stops.met}
	return d.cut(FinishStop, emit)
}

// tokenLength is the number of bytes that a token stands for.
func tokenLength(token []byte) int {
	if bytes := gjson.GetBytes(token, "bytes"); bytes.IsArray() {
		return len(bytes.Array())
	}
	return len(gjson.GetBytes(token, "token").Str)
}

// cut ends the answer. The engine would go on.
func (d *llamaDecoder) cut(reason FinishReason, emit func(Event) error) error {
	if d.usage = d.used(); d.usage == nil {
		d.usage = &Usage{Prompt: d.prompt.Total, Cached: d.prompt.Cached, Completion: d.pieces}
	}
	if err := d.end(Finish{reason}, emit); err != nil {
		return err
	}
	return ErrCut
}
