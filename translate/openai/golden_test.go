package openai

import (
	"github.com/lmcaddy/lmcaddy/translate"
)

// envelope is what the tests' answers say of themselves.
var envelope = Envelope{ID: "chatcmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"}

// gather is the body that is made of events.
func gather(field ReasoningField, events []translate.Event) []byte {
	b := ChatBody{Envelope: envelope, Reasoning: field}
	var dst []byte
	for _, ev := range events {
		dst = b.Append(dst, ev)
	}
	return dst
}
