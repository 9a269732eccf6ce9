package fakeengine

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// beginning is what a prompt has of the answer: in a chat the last message, if it is the assistant's, and in a text its end.
type beginning struct{ reasoning, text, prompt string }

// begunBy returns the beginning of the answer to a chat.
func begunBy(messages []gjson.Result) beginning {
	if len(messages) == 0 {
		return beginning{}
	}
	last := messages[len(messages)-1]
	if last.Get("role").Str != "assistant" {
		return beginning{}
	}
	return beginning{reasoning: last.Get("reasoning_content").Str, text: textOf(last)}
}

// joined returns the texts of a prompt, which may mix them with token ids.
func joined(prompt gjson.Result) string {
	var b strings.Builder
	for _, part := range prompt.Array() { // a lone text is an array of one
		if part.Type == gjson.String {
			b.WriteString(part.Str)
		}
	}
	return b.String()
}

// rest returns an answer without what the prompt has of it. A beginning that isn't the answer's changes nothing.
func (b beginning) rest(answer fakekit.Answer) fakekit.Answer {
	texts := answer.Texts()
	switch {
	case b.prompt != "":
		for n := len(texts) - 1; n > 0; n-- {
			if begun := strings.Join(texts[:n], ""); strings.HasSuffix(b.prompt, begun) {
				answer.Pieces, answer.Chunks = texts[n:], 0
				return answer
			}
		}
	case b.text != "" && strings.HasPrefix(strings.Join(texts, ""), b.text):
		answer.Reasoning, answer.Pieces, answer.Chunks = "", after(texts, len(b.text)), 0
	case b.text == "" && b.reasoning != "":
		answer.Reasoning = strings.TrimPrefix(answer.Reasoning, b.reasoning)
	}
	return answer
}

// after returns the pieces of a text without its first n bytes.
func after(pieces []string, n int) []string {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n == 0 {
		return append([]string{}, pieces...) // not nil, which stands for another text
	}
	return append([]string{pieces[0][n:]}, pieces[1:]...)
}
