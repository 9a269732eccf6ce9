package translate_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
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
		body := testkit.Scan(t, request)
		r, err := openai.RerankJina.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		up := llamaserver.Wire{}.Rerank(body, r)
		if diff := cmp.Diff("/v1/rerank "+tt.upstream, up.Path+" "+string(bytes.Join(up.Body, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
		got, err := llamaserver.Wire{}.Reranked([]byte(answer), 3)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"object":"list","results":[` + tt.want + `],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`
		if diff := cmp.Diff(want, string(openai.RerankJina.Body(r, "", "m", got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
	}
}
