package request

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Completion is a request for text completions, without the fields that only the engine needs.
type Completion struct {
	Prompts   []json.RawMessage // each a string, or an array of token ids
	N         int               // number of choices for each prompt
	BestOf    int               // number of candidates for each prompt; the N likeliest become choices
	Echo      bool              // choices begin with their prompt
	Suffix    string            // text after the gap to fill; empty if there is no gap
	Logprobs  int               // number of likeliest tokens listed for each token; negative for no log probabilities
	MaxTokens int               // of each choice; negative for no limit
	Stop      []string
	Seed      int // that an engine has, or RandomSeed

	Edit jsonbody.Edit // changes of the sampling fields
}

// IsTokens reports whether a prompt is an array of token ids.
func IsTokens(text json.RawMessage) bool { return text[0] == '[' }

// Refine returns an engine's error about a completion with the field of the request that is at fault.
func (c *Completion) Refine(err *translate.Error) *translate.Error { return refineInput(err, "prompt") }

// NoInfill is the error of a completion with a suffix by a model that can't fill in a gap.
func NoInfill() *translate.Error {
	return translate.Invalid("unsupported_value", "suffix", `The model can't fill a gap: leave out "suffix", or choose a model that was trained to fill in the middle.`)
}
