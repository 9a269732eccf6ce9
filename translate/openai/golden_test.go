package openai

import (
	"github.com/lmcaddy/lmcaddy/translate"
)

// envelope is what the tests' answers say of themselves.
var envelope = Envelope{ID: "chatcmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"}

// gather is the body that is made of events.
func gather(field ReasoningField, events []translate.Event) []byte {
	return gatherInto(&ChatBody{Envelope: envelope, Reasoning: field}, events)
}

// gatherInto is the body that b makes of the events of one choice; nil if they don't come to their end.
func gatherInto(b *ChatBody, events []translate.Event) []byte {
	var choice ChatChoice
	for _, ev := range events {
		choice.Add(ev)
		if _, ok := ev.(translate.Finish); ok {
			return b.AppendBody(nil, []*ChatChoice{&choice})
		}
	}
	return nil
}
