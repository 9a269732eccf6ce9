package fakekit

import "unicode"

const defaultText = "Hello from the fake engine."

// Choose returns the answer for this round of the conversation.
func (r *Rule) Choose(rounds int) Answer {
	if rounds == 0 || len(r.AfterTools) == 0 {
		return r.Answer
	}
	return r.AfterTools[min(rounds, len(r.AfterTools))-1]
}

// Texts returns the text deltas.
func (a *Answer) Texts() []string {
	pieces := a.Pieces
	if pieces == nil {
		pieces = Words(a.Text)
	}
	if len(pieces) == 0 && (a.Chunks > 0 || a.Pieces == nil && a.Reasoning == "" && len(a.Calls) == 0) {
		pieces = Words(defaultText)
	}
	if a.Chunks == 0 {
		return pieces
	}
	all := make([]string, a.Chunks)
	for i := range all {
		all[i] = pieces[i%len(pieces)]
	}
	return all
}

// Words splits a text into the fake model's tokens: each word with the space before it. Their concatenation is the text.
func Words(text string) []string {
	var all []string
	start, inWord := 0, false
	for i, r := range text {
		if unicode.IsSpace(r) && inWord {
			all = append(all, text[start:i])
			start = i
		}
		inWord = !unicode.IsSpace(r)
	}
	if start < len(text) {
		all = append(all, text[start:])
	}
	return all
}
