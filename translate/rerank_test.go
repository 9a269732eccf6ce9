package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRerank(t *testing.T) {
	t.Parallel()
	const answer = `{"model":"x","usage":{"prompt_tokens":8,"total_tokens":8},"results":[` +
		`{"index":1,"relevance_score":1.875},{"index":0,"relevance_score":-0.5},{"index":2,"relevance_score":-0.5}]}`
	const first, second, third = `{"index":1,"relevance_score":1.875`, `{"index":0,"relevance_score":-0.5`, `{"index":2,"relevance_score":-0.5`
	for request, tt := range map[string]struct{ upstream, want string }{
		`{"model":"m","query":"q","documents":["a","b","c"]}`: {
			`{"query":"q","documents":["a","b","c"]}`, first + `},` + second + `},` + third + `}`,
		},
		`{"query":"q","documents":["a",{"text":"<b>"},"c"],"top_n":1,"return_documents":true}`: {
			`{"query":"q","documents":["a","<b>","c"]}`, first + `,"document":{"text":"<b>"}}`,
		},
		`{"query":"q","documents":["a","b","c"],"top_n":9,"other":1}`: {
			`{"query":"q","documents":["a","b","c"]}`, first + `},` + second + `},` + third + `}`,
		},
	} {
		body := scanned(t, request)
		r, err := ParseRerank(body)
		if err != nil {
			t.Fatal(err)
		}
		up := LlamaServer{}.Rerank(body, r)
		if diff := cmp.Diff("/v1/rerank "+tt.upstream, up.Path+" "+string(up.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
		got, err := LlamaServer{}.Reranked([]byte(answer), 3)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"object":"list","results":[` + tt.want + `],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`
		if diff := cmp.Diff(want, string(RerankBody(r, "m", got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
	}
}

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
		_, err := ParseRerank(scanned(t, request))
		if err == nil || err.Code+" "+err.Param != want || err.Status() != 400 {
			t.Errorf("%s: %+v, want %s", request, err, want)
		}
	}
}

func TestReranked_Nonsense(t *testing.T) {
	t.Parallel()
	for _, results := range []string{
		`3`, `[]`, `[{"index":0,"relevance_score":1}]`, `[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]`,
		`[{"index":0,"relevance_score":1},{"index":2,"relevance_score":1}]`, `[{"index":0,"relevance_score":1},{"index":1,"relevance_score":null}]`,
	} {
		if _, err := (LlamaServer{}).Reranked([]byte(`{"results":`+results+`}`), 2); err == nil || err.Kind != KindEngineFailed {
			t.Errorf("%s: %v", results, err)
		}
	}
}
