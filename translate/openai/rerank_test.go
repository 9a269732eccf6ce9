package openai

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestParseRerank_Refuses(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{"documents":["a"]}`:                                  "missing_required_parameter query",
		`{"query":3,"documents":["a"]}`:                        "invalid_type query",
		`{"query":"q"}`:                                        "missing_required_parameter documents",
		`{"query":"q","documents":"a"}`:                        "invalid_type documents",
		`{"query":"q","documents":[]}`:                         "invalid_value documents",
		`{"query":"q","documents":[3]}`:                        "invalid_type documents",
		`{"query":"q","documents":[{"title":"a"}]}`:            "invalid_type documents",
		`{"query":"q","documents":["a"],"top_n":0}`:            "invalid_value top_n",
		`{"query":"q","documents":["a"],"top_n":"1"}`:          "invalid_type top_n",
		`{"query":"q","documents":["a"],"return_documents":1}`: "invalid_type return_documents",
	} {
		_, err := RerankJina.Parse(testkit.Scan(t, request))
		if err == nil || err.Code+" "+err.Param != want || err.Status() != 400 {
			t.Errorf("%s: %+v, want %s", request, err, want)
		}
	}
}

// The form of a request is told by its path and by what holds its documents.
func TestRerankForm(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		`/v2/rerank {"query":"q","documents":["a","b"],"top_n":1}`:            `{"id":"x","results":[{"index":1,"relevance_score":2}],"meta":{"api_version":{"version":"2"},"tokens":{"input_tokens":5,"output_tokens":0}}}`,
		`/rerank {"query":"q","texts":["a","b"]}`:                             `[{"index":1,"score":2},{"index":0,"score":-1}]`,
		`/v1/reranking {"query":"q","texts":["a","b"],"return_text":true}`:    `[{"index":1,"text":"b","score":2},{"index":0,"text":"a","score":-1}]`,
		`/rerank {"query":"q","documents":["a","b"],"top_n":1}`:               `{"object":"list","results":[{"index":1,"relevance_score":2}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		`/rerank {"query":"q","documents":["a","b"],"texts":["c"],"top_n":1}`: `{"object":"list","results":[{"index":1,"relevance_score":2}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		`/rerank {"query":"q","texts":[]}`:                                    `invalid_value texts`,
		`/rerank {"query":"q","texts":"a"}`:                                   `invalid_type texts`,
		`/rerank {"query":"q","texts":["a"],"return_text":"yes"}`:             `invalid_type return_text`,
		`/v2/rerank {"query":"q","texts":["a"]}`:                              `missing_required_parameter documents`,
		`/rerank {"query":"q"}`:                                               `missing_required_parameter documents`,
	} {
		path, fields, _ := strings.Cut(asked, " ")
		body := testkit.Scan(t, fields)
		form := RerankFormOf(path, body)
		r, err := form.Parse(body)
		var got string
		if err != nil {
			got = err.Code + " " + err.Param
		} else {
			got = string(form.Body(r, "x", "m", &request.Reranked{Scores: []float64{-1, 2}, Prompt: 5}))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
}
