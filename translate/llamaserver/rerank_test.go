package llamaserver

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestReranked_Nonsense(t *testing.T) {
	t.Parallel()
	for _, results := range []string{
		`3`, `[]`, `[{"index":0,"relevance_score":1}]`, `[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]`,
		`[{"index":0,"relevance_score":1},{"index":2,"relevance_score":1}]`, `[{"index":0,"relevance_score":1},{"index":1,"relevance_score":null}]`,
	} {
		if _, err := (Wire{}).Reranked([]byte(`{"results":`+results+`}`), 2); err == nil || err.Kind != translate.KindEngineFailed {
			t.Errorf("%s: %v", results, err)
		}
	}
}
