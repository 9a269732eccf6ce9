package openai

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseEmbedding parses a request for embeddings.
func ParseEmbedding(body *jsonbody.Body) (*request.Embedding, *translate.Error) {
	inputs, err := texts(body, "input", maxInputs)
	if err != nil {
		return nil, err
	}
	if len(inputs) > maxInputs {
		return nil, translate.Invalid("invalid_value", "input", `"input" must hold at most `+strconv.Itoa(maxInputs)+` texts. Send several requests.`)
	}
	for _, input := range inputs {
		if string(input) == `""` {
			return nil, translate.Invalid("invalid_value", "input", `"input" must not hold an empty text.`)
		}
	}
	e := &request.Embedding{Inputs: inputs}
	if e.Dimensions, _, err = count(body, "dimensions", 1, math.MaxInt32); err != nil {
		return nil, err
	}
	format, err := body.String("encoding_format")
	switch {
	case err != nil:
		return nil, err
	case format != "" && format != "float" && format != "base64":
		return nil, translate.Invalid("invalid_value", "encoding_format", `"encoding_format" must be "float" or "base64".`)
	}
	e.Base64 = format == "base64"
	return e, nil
}

// EmbeddingBody returns the response to a request for embeddings. It is an error if the vectors have fewer dimensions than
// requested.
func EmbeddingBody(e *request.Embedding, model string, got *request.Embedded) ([]byte, *translate.Error) {
	out := []byte(`{"object":"list","data":[`)
	for i, vector := range got.Vectors {
		if have := len(vector) / 4; e.Dimensions > have {
			return nil, translate.Invalid("invalid_value", "dimensions",
				`"dimensions" is `+strconv.Itoa(e.Dimensions)+`, but the model's vectors have `+strconv.Itoa(have)+`: ask for at most as many.`)
		}
		if e.Dimensions > 0 {
			vector = request.ShortVector(vector, e.Dimensions)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"object":"embedding","index":`...)
		out = append(out, strconv.Itoa(i)...)
		out = append(out, `,"embedding":`...)
		if e.Base64 {
			out = append(base64.StdEncoding.AppendEncode(append(out, '"'), vector), `"}`...)
		} else {
			out = append(request.AppendVector(out, vector), '}')
		}
	}
	out = append(out, `],"model":`...)
	out = jsonbody.AppendJSON(out, model)
	out = append(out, `,"usage":`...)
	out = jsonbody.AppendJSON(out, inputUsage{got.Prompt, got.Prompt})
	return append(out, '}'), nil
}

// maxInputs is the maximum number of texts in a request for embeddings or ranks.
const maxInputs = 4096

// inputUsage is the usage of a request without output tokens.
type inputUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}
