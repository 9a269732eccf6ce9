package request

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Completion is what a request for text completions asks for, but for what only the engine has to know of.
type Completion struct {
	Prompts   []json.RawMessage // each a string, or an array of token ids
	N         int               // choices for each prompt
	BestOf    int               // candidates for each prompt, of which the N likeliest are the choices
	Echo      bool              // each choice begins with its prompt
	Suffix    string            // what comes behind the gap that is to be filled; empty: there is none
	Logprobs  int               // the likeliest tokens that are wanted beside each token; negative: no log probabilities at all
	MaxTokens int               // for each choice; negative: no limit
	Stop      []string
	Seed      int
	HasSeed   bool

	Edit jsonbody.Edit // of the fields that shape the sampling
}

// IsTokens tells whether one of texts is an array of token ids.
func IsTokens(text json.RawMessage) bool { return text[0] == '[' }

// Refine returns an engine's error about a completion with the field of the request that is at fault.
func (c *Completion) Refine(err *translate.Error) *translate.Error { return refineInput(err, "prompt") }

// NoInfill is the error of a completion with a suffix by a model that can't fill in a gap.
func NoInfill() *translate.Error {
	return translate.Invalid("unsupported_value", "suffix", `The model can't fill a gap: leave out "suffix", or choose a model that was trained to fill in the middle.`)
}
