package translate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestEmbedding_AsksTheEngine(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{"model":"m","input":"a","user":"u"}`:                                  `{"input":"a","encoding_format":"base64"}`,
		`{"input":["a","b"],"encoding_format":"float","dimensions":2,"ttl":60}`: `{"input":["a","b"],"encoding_format":"base64"}`,
		`{"input":[[1,2],[3]],"encoding_format":null,"embd_normalize":2}`:       `{"input":[[1,2],[3]],"encoding_format":"base64"}`,
	} {
		body := testkit.Scan(t, request)
		e, err := openai.ParseEmbedding(body)
		if err != nil {
			t.Fatal(err)
		}
		up := llamaserver.Wire{}.Embeddings(body, e)
		if string(bytes.Join(up.Body, nil)) != want || up.Path != "/v1/embeddings" {
			t.Errorf("%s becomes %s %s", request, up.Path, up.Body)
		}
	}
}

func TestEmbedding_Body(t *testing.T) {
	t.Parallel()
	answer := `{"object":"list","data":[{"embedding":"` + testkit.Packed(0.6, 0, -0.8) + `","index":1},{"embedding":"` + testkit.Packed(0.1, 1e-9, -1) +
		`","index":0}],"usage":{"prompt_tokens":5,"total_tokens":5},"model":"x"}`
	got, bad := llamaserver.Wire{}.Embedded([]byte(answer), 2)
	if bad != nil {
		t.Fatal(bad)
	}
	const head, tail = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":`, `}],"model":"lmcaddy/\"m\"","usage":{"prompt_tokens":5,"total_tokens":5}}`
	const second = `},{"object":"embedding","index":1,"embedding":`
	for name, tt := range map[string]struct {
		e    request.Embedding
		want string
	}{
		"numbers": {request.Embedding{}, head + `[0.1,1e-09,-1]` + second + `[0.6,0,-0.8]` + tail},
		"base64":  {request.Embedding{Base64: true}, head + `"` + testkit.Packed(0.1, 1e-9, -1) + `"` + second + `"` + testkit.Packed(0.6, 0, -0.8) + `"` + tail},
		"all":     {request.Embedding{Dimensions: 3}, head + `[0.1,1e-09,-1]` + second + `[0.6,0,-0.8]` + tail},
		"two":     {request.Embedding{Dimensions: 2}, head + `[1,1e-08]` + second + `[1,0]` + tail},
	} {
		body, err := openai.EmbeddingBody(&tt.e, `lmcaddy/"m"`, got)
		if err != nil || !json.Valid(body) {
			t.Fatalf("%s: %v %s", name, err, body)
		}
		if diff := cmp.Diff(tt.want, string(body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, bad = openai.EmbeddingBody(&request.Embedding{Dimensions: 4}, "m", got)
	if bad == nil || bad.Param != "dimensions" || bad.Code != "invalid_value" || !strings.Contains(bad.Message, "4") || !strings.Contains(bad.Message, "3") {
		t.Errorf("too many dimensions: %+v", bad)
	}
}

// FuzzAnswers checks that parsing any answer doesn't panic and results in JSON.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"data":[{"embedding":"`+testkit.Packed(1, 2)+`","index":0}],"usage":{"prompt_tokens":5}}`), 1, 1)
	f.Add([]byte(`{"results":[{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":-1e99}]}`), 2, 1)
	f.Add([]byte(`{"results":[{"index":0,"relevance_score":1e999}]}`), 1, 1)
	f.Fuzz(func(t *testing.T, answer []byte, n, dimensions int) {
		if n < 1 || n > 50 || dimensions < 0 {
			return
		}
		if got, err := (llamaserver.Wire{}).Embedded(answer, n); err == nil {
			for _, isBase64 := range []bool{false, true} {
				body, err := openai.EmbeddingBody(&request.Embedding{Dimensions: dimensions, Base64: isBase64}, "m", got)
				if err == nil && !json.Valid(body) {
					t.Fatalf("not JSON: %s", body)
				}
			}
		}
		if got, err := (llamaserver.Wire{}).Reranked(answer, n); err == nil {
			body := openai.RerankJina.Body(&request.Rerank{Documents: make([]string, n), TopN: n, ReturnDocuments: true}, "", "m", got)
			if !json.Valid(body) {
				t.Fatalf("not JSON: %s", body)
			}
		}
	})
}
