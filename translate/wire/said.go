package wire

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Said is what an answer has said when its engine is lost. It is enough to go on with the answer on another engine.
type Said struct {
	Reasoning, Text string

	Probs     int  // number of tokens whose log probabilities were told
	HasCalls  bool // a call has begun
	IsMixed   bool // there was thinking after some text
	IsTooLong bool // more was said than MaxSaid: Reasoning and Text are empty

	Usage   translate.Usage   // so far; Prompt is 0 if unknown
	IsExact bool              // Usage is the engine's own, and not counted from the pieces
	Timings translate.Timings // so far, as far as the engine tells them
}

// MaxSaid is the maximum size, in bytes, of an answer that can go on. A longer one isn't kept in memory.
const MaxSaid = 1 << 20

// IsEmpty reports whether nothing was said.
func (s *Said) IsEmpty() bool {
	return s.Reasoning == "" && s.Text == "" && s.Probs == 0 && !s.HasCalls && !s.IsTooLong
}

// CanGoOn reports whether an engine can go on with the answer at all. Calls can't be begun in a prompt.
func (s *Said) CanGoOn() bool { return !s.HasCalls && !s.IsTooLong }

// Continuer is an engine that can go on with an answer that another process of it has begun.
type Continuer interface {
	// Continue returns the request of Chat whose answer goes on after what was said. It returns false if there is none whose
	// answer could have been that of the first request.
	Continue(body *jsonbody.Body, chat *request.Chat, choice int, said *Said) (Upstream, bool)
}

// TextContinuer is a [Completer] that can go on with a text.
type TextContinuer interface {
	// ContinueText is like Continue, for a request of Completion.
	ContinueText(body *jsonbody.Body, c *request.Completion, prompt, candidate int, said *Said) (Upstream, bool)
}

// Repeats reports whether an engine probably gives the same answer to a chat again: it takes the likeliest tokens, or chooses
// them by a seed.
func Repeats(e Engine, body *jsonbody.Body, chat *request.Chat) bool {
	return repeats(e, body, &chat.Edit, chat.Seed(body, 0))
}

// RepeatsText is like [Repeats], for text completions.
func RepeatsText(e Engine, body *jsonbody.Body, c *request.Completion) bool {
	return repeats(e, body, &c.Edit, c.Seed)
}

func repeats(e Engine, body *jsonbody.Body, edit *jsonbody.Edit, seed int) bool {
	temperature := gjson.ParseBytes(edit.Value(body, "temperature"))
	isLikeliest := temperature.Type == gjson.Number && temperature.Num <= 0 || temperature.Type == gjson.Null && e.Quirks().IsGreedy
	return isLikeliest || seed != request.RandomSeed || gjson.ParseBytes(edit.Value(body, "top_k")).Num == 1
}

func tokensIn(content json.RawMessage) (n int) {
	gjson.ParseBytes(content).ForEach(func(_, _ gjson.Result) bool {
		n++
		return true
	})
	return n
}

// withoutFirst returns a Logprobs event's content without the first n tokens, nil if nothing is left.
func withoutFirst(content json.RawMessage, n int) json.RawMessage {
	tokens := gjson.ParseBytes(content).Array()
	if n >= len(tokens) {
		return nil
	}
	rest := []byte{'['}
	for _, token := range tokens[n:] {
		rest = append(jsonbody.AppendComma(rest), token.Raw...)
	}
	return append(rest, ']')
}
