package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

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
		return nil, translate.BadValue("input", "must hold at most %d texts. Send several requests.", maxInputs)
	}
	for _, input := range inputs {
		if string(input) == `""` {
			return nil, translate.BadValue("input", "must not hold an empty text.")
		}
	}
	b := body.Fields()
	dimensions, _ := count(b, "dimensions", 1, math.MaxInt32)
	format := b.Text("encoding_format")
	if format != "" && format != "float" && format != "base64" {
		b.Refuse(translate.BadValue("encoding_format", `must be "float" or "base64".`))
	}
	return &request.Embedding{Inputs: inputs, Dimensions: dimensions, Base64: format == "base64"}, b.Err
}

// EmbeddingBody returns the response to a request for embeddings. It is an error if the vectors have fewer dimensions than
// requested.
func EmbeddingBody(e *request.Embedding, model string, got *request.Embedded) ([]byte, *translate.Error) {
	out := []byte(`{"object":"list","data":[`)
	for i, vector := range got.Vectors {
		if have := len(vector) / 4; e.Dimensions > have {
			return nil, translate.BadValue("dimensions",
				"is %d, but the model's vectors have %d: ask for at most as many.", e.Dimensions, have)
		}
		if e.Dimensions > 0 {
			vector = request.ShortVector(vector, e.Dimensions)
		}
		out = strconv.AppendInt(append(jsonbody.AppendComma(out), `{"object":"embedding","index":`...), int64(i), 10)
		out = append(out, `,"embedding":`...)
		if e.Base64 {
			out = append(base64.StdEncoding.AppendEncode(append(out, '"'), vector), `"}`...)
		} else {
			out = append(request.AppendVector(out, vector), '}')
		}
	}
	out = jsonbody.AppendString(append(out, `],"model":`...), model)
	return append(jsonbody.AppendJSON(append(out, `,"usage":`...), inputUsage{got.Prompt, got.Prompt}), '}'), nil
}

// maxInputs is the maximum number of texts in a request for embeddings or ranks.
const maxInputs = 4096

// inputUsage is the usage of a request without output tokens.
type inputUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// RerankForm is the API in whose form ranks are asked for and answered.
type RerankForm uint8

// The forms.
const (
	RerankJina   RerankForm = iota // Jina's, llama-server's and the first version of Cohere's
	RerankCohere                   // the second version of Cohere's, whose clients want an id and "meta"
	RerankTEI                      // Text Embeddings Inference's: texts, and a plain array of scores
)

// RerankFormOf returns the form of a request by its path and by what holds its documents.
func RerankFormOf(path string, body *jsonbody.Body) RerankForm {
	switch {
	case path == "/v2/rerank":
		return RerankCohere
	case !body.Get("documents").Exists() && body.Get("texts").Exists():
		return RerankTEI
	default:
		return RerankJina
	}
}

// Parse parses a request for ranks. A document is a string, or an object with a text.
func (f RerankForm) Parse(body *jsonbody.Body) (*request.Rerank, *translate.Error) {
	b := body.Fields()
	b.Required("query")
	r := &request.Rerank{Field: "documents"}
	withDocuments := "return_documents"
	if f == RerankTEI {
		r.Field, withDocuments = "texts", "return_text"
	}
	documents, err := parseDocuments(r.Field, body.Get(r.Field))
	b.Refuse(err)
	r.Documents, r.ReturnDocuments, r.TopN = documents, b.Bool(withDocuments), len(documents)
	if n, given := count(b, "top_n", 1, math.MaxInt32); given {
		r.TopN = min(n, r.TopN)
	}
	return r, b.Err
}

// Body returns the response to a request for ranks, the best documents first. id is that of the request.
func (f RerankForm) Body(r *request.Rerank, id, model string, got *request.Reranked) []byte {
	best := make([]int, len(got.Scores))
	for i := range best {
		best[i] = i
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(got.Scores[b], got.Scores[a]) })
	best = best[:r.TopN]
	if f == RerankTEI {
		items := make([]scoredText, len(best))
		for i, at := range best {
			items[i] = scoredText{Index: at, Score: got.Scores[at]}
			if r.ReturnDocuments {
				items[i].Text = &r.Documents[at]
			}
		}
		return jsonbody.AppendJSON(nil, items)
	}
	items := make([]rerankItem, len(best))
	for i, at := range best {
		items[i] = rerankItem{Index: at, Score: got.Scores[at]}
		if r.ReturnDocuments {
			items[i].Document = &rerankDocument{r.Documents[at]}
		}
	}
	if f == RerankCohere {
		meta := `{"api_version":{"version":"2"},"tokens":{"input_tokens":` + strconv.Itoa(got.Prompt) + `,"output_tokens":0}}`
		return jsonbody.AppendJSON(nil, cohereBody{id, items, json.RawMessage(meta)})
	}
	return jsonbody.AppendJSON(nil, rerankBody{"list", items, model, inputUsage{got.Prompt, got.Prompt}})
}

func parseDocuments(field string, v gjson.Result) (documents []string, _ *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return nil, translate.Missing(field)
	case !v.IsArray():
		return nil, jsonbody.WrongType(field, "an array", v)
	}
	for _, item := range jsonbody.AtMost(maxInputs, v) {
		if item.IsObject() {
			item = item.Get("text")
		}
		if item.Type != gjson.String {
			return nil, translate.Refused("invalid_type", field, `must hold strings, or objects that have a "text".`)
		}
		documents = append(documents, item.Str)
	}
	switch n := len(documents); {
	case n == 0:
		return nil, translate.BadValue(field, "must not be empty.")
	case n > maxInputs:
		return nil, translate.BadValue(field, "must hold at most %d texts. Send several requests.", maxInputs)
	}
	return documents, nil
}

type (
	rerankBody struct {
		Object  string       `json:"object"`
		Results []rerankItem `json:"results"`
		Model   string       `json:"model"`
		Usage   inputUsage   `json:"usage"`
	}
	rerankItem struct {
		Index    int             `json:"index"`
		Score    float64         `json:"relevance_score"`
		Document *rerankDocument `json:"document,omitempty"`
	}
	rerankDocument struct {
		Text string `json:"text"`
	}
	cohereBody struct {
		ID      string          `json:"id"`
		Results []rerankItem    `json:"results"`
		Meta    json.RawMessage `json:"meta"`
	}
	scoredText struct {
		Index int     `json:"index"`
		Text  *string `json:"text,omitempty"`
		Score float64 `json:"score"`
	}
)
