package openaistream

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// form is what the body of an answer is. Some servers send their answers and errors in one piece, even if they are asked for a stream.
type form uint8

const (
	isUnknown form = iota // nothing was seen but white space
	isStream
	isDocument // JSON, HTML or something else
)

// see decides by the first byte that isn't white space. Lines of a stream begin with a field's name or a colon.
func (f *form) see(p []byte) {
	if p = bytes.TrimLeft(p, " \t\r\n"); *f != isUnknown || len(p) == 0 {
		return
	}
	if *f = isStream; bytes.IndexByte([]byte("{[<"), p[0]) >= 0 {
		*f = isDocument
	}
}

// answer decodes an answer that isn't a stream.
func (d *Decoder) answer(emit func(translate.Event) error) error {
	all := gjson.ParseBytes(d.whole)
	if isJSON := all.IsObject() || all.IsArray(); isJSON && !gjson.ValidBytes(d.whole) {
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	}
	if fault := all.Get("error"); fault.Exists() && fault.Type != gjson.Null || all.Get("object").Str == "error" {
		return d.end(translate.Fault{Err: d.options.Fault(statusOf(fault), all)}, emit)
	}
	choice := all.Get("choices.0")
	if !choice.IsObject() {
		return d.end(translate.Fault{Err: d.options.Nonsense()}, emit)
	}
	if used := all.Get("usage"); used.IsObject() {
		u := usageOf(used)
		d.usage = &u
	}
	if err := d.choice(choice, "message", emit); err != nil {
		return err
	}
	return d.finish(emit)
}
