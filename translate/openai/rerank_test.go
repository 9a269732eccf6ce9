package openai

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/internal/testkit"
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
		_, err := ParseRerank(testkit.Scan(t, request))
		if err == nil || err.Code+" "+err.Param != want || err.Status() != 400 {
			t.Errorf("%s: %+v, want %s", request, err, want)
		}
	}
}
