package openai

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseRerank parses a request for ranks. A document is a string, or an object with a text.
func ParseRerank(body *jsonbody.Body) (*request.Rerank, *translate.Error) {
	query, err := body.String("query")
	if err != nil {
		return nil, err
	}
	if query == "" {
		return nil, translate.Missing("query")
	}
	r := &request.Rerank{}
	if r.Documents, err = parseDocuments(body.Get("documents")); err != nil {
		return nil, err
	}
	if r.ReturnDocuments, err = body.Bool("return_documents"); err != nil {
		return nil, err
	}
	n, given, err := count(body, "top_n", 1, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if r.TopN = len(r.Documents); given {
		r.TopN = min(n, r.TopN)
	}
	return r, nil
}

// RerankBody returns the response to a request for ranks, the best documents first.
func RerankBody(r *request.Rerank, model string, got *request.Reranked) []byte {
	items := make([]rerankItem, len(got.Scores))
	for i, score := range got.Scores {
		items[i] = rerankItem{Index: i, Score: score}
		if r.ReturnDocuments {
			items[i].Document = &rerankDocument{r.Documents[i]}
		}
	}
	slices.SortStableFunc(items, func(a, b rerankItem) int { return cmp.Compare(b.Score, a.Score) })
	return jsonbody.AppendJSON(nil, rerankBody{"list", items[:r.TopN], model, inputUsage{got.Prompt, got.Prompt}})
}

func parseDocuments(v gjson.Result) (documents []string, _ *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return nil, translate.Missing("documents")
	case !v.IsArray():
		return nil, jsonbody.WrongType("documents", "an array", v)
	}
	for _, item := range jsonbody.AtMost(maxInputs, v) {
		if item.IsObject() {
			item = item.Get("text")
		}
		if item.Type != gjson.String {
			return nil, translate.Invalid("invalid_type", "documents", `"documents" must hold strings, or objects that have a "text".`)
		}
		documents = append(documents, item.Str)
	}
	switch n := len(documents); {
	case n == 0:
		return nil, translate.Invalid("invalid_value", "documents", `"documents" must not be empty.`)
	case n > maxInputs:
		return nil, translate.Invalid("invalid_value", "documents", `"documents" must hold at most `+strconv.Itoa(maxInputs)+` texts. Send several requests.`)
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
)
