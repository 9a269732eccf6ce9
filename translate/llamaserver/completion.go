package llamaserver

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Completion uses llama-server's own endpoints: they always report why generation ended and the number of tokens, and the one
// for infilling has the same format.
func (Wire) Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) wire.Upstream {
	e := textEdit(&c.Edit, c.MaxTokens)
	if len(c.Stop) > 0 {
		e.Set("stop", string(jsonbody.AppendJSON(nil, c.Stop)))
	}
	if seed := c.SeedOf(candidate); seed != request.RandomSeed { // otherwise llama-server chooses one
		e.Set("seed", strconv.Itoa(seed))
	}
	if n := probabilities(c); n > 0 {
		e.Set("n_probs", strconv.Itoa(n))
	}
	if c.Suffix == "" {
		e.SetLarge("prompt", c.Prompts[prompt])
		return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
	}
	e.SetLarge("input_prefix", c.Prompts[prompt])
	e.SetLarge("input_suffix", jsonbody.AppendString(nil, c.Suffix))
	return wire.Upstream{Path: infillPath, Body: e.Pieces(body)}
}

// textEdit returns what every request for a text has. The edit is that of the client's request.
func textEdit(edit *jsonbody.Edit, limit int) jsonbody.Edit {
	e := edit.Only(textFields)
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("response_fields", completionFields)
	e.Set("n_predict", strconv.Itoa(limit))
	return e
}

// completionFields are the fields of the last chunk. Others would repeat the prompt and all settings.
const completionFields = `["content","stop","stop_type","stopping_word","truncated","tokens_predicted","tokens_evaluated","timings"]`

// probabilities returns the number of likeliest tokens to ask for. It takes one to get the log probability of the chosen token.
func probabilities(c *request.Completion) int {
	if c.Logprobs < 0 && c.BestOf == c.N {
		return 0
	}
	return max(1, c.Logprobs)
}

// CompletionDecoder decodes the answer to a request of Completion.
func (Wire) CompletionDecoder(*request.Completion) translate.Decoder { return &textDecoder{} }

// Detokenize returns the request for the text of token ids.
func (Wire) Detokenize(tokens json.RawMessage) wire.Upstream {
	return wire.Upstream{Path: "/detokenize", Body: [][]byte{append(append([]byte(`{"tokens":`), tokens...), '}')}}
}

// Detokenized parses {"content":"…"}.
func (Wire) Detokenized(answer []byte) (string, *translate.Error) {
	content := gjson.GetBytes(answer, "content")
	if !jsonbody.IsObject(answer) || content.Type != gjson.String {
		return "", translate.Nonsense()
	}
	return content.Str, nil
}
