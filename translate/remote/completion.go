package remote

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Completion returns the request for one candidate of one prompt.
func (w *base) Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) wire.Upstream {
	e := c.Edit.Only(w.textFields)
	w.address(&e)
	e.SetLarge("prompt", c.Prompts[prompt])
	if c.Suffix != "" {
		e.Set("suffix", string(jsonbody.AppendJSON(nil, c.Suffix)))
	}
	if c.MaxTokens >= 0 {
		e.Set("max_tokens", strconv.Itoa(max(1, c.MaxTokens))) // of 0, one token is generated that is left out of the answer
	}
	if seed := c.SeedOf(candidate); seed != request.RandomSeed {
		e.Set("seed", strconv.Itoa(seed))
	}
	if penalty := c.Edit.Value(body, "repeat_penalty"); w.renames && jsonbody.IsGiven(penalty) {
		e.Set("repetition_penalty", string(penalty))
	}
	return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
}

// CompletionDecoder decodes the answer to a request of Completion.
func (w *base) CompletionDecoder(c *request.Completion) translate.Decoder {
	d := w.decoder(true)
	d.Limit(c.MaxTokens)
	return wire.EndAtStops(d, c.Stop)
}

// CheckCompletion refuses what the server can't do or what its answer doesn't tell.
func (w *base) CheckCompletion(body *jsonbody.Body, c *request.Completion) *translate.Error {
	switch {
	case c.Logprobs >= 0:
		return translate.Invalid("unsupported_value", "logprobs", `The model is on a remote, whose text completions have no log probabilities here: leave out "logprobs", or use /v1/chat/completions.`)
	case c.BestOf > c.N:
		return translate.Invalid("unsupported_value", "best_of", `The model is on a remote, which doesn't tell how likely a text completion is: leave out "best_of".`)
	case !w.ids && slices.ContainsFunc(c.Prompts, request.IsTokens):
		return translate.Invalid("unsupported_value", "prompt", `The remote of the model takes no token ids: send the "prompt" as text.`)
	default:
		return w.checkBias(gjson.ParseBytes(c.Edit.Value(body, "logit_bias")))
	}
}
