package translate

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func vector(components ...float32) []byte {
	var raw []byte
	for _, x := range components {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return raw
}

func packed(components ...float32) string {
	return base64.StdEncoding.EncodeToString(vector(components...))
}

func TestParseEmbedding_Refuses(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{}`:                  "missing_required_parameter input",
		`{"input":null}`:      "missing_required_parameter input",
		`{"input":""}`:        "invalid_value input",
		`{"input":[]}`:        "invalid_value input",
		`{"input":["a",""]}`:  "invalid_value input",
		`{"input":[[]]}`:      "invalid_type input",
		`{"input":["a",[1]]}`: "invalid_type input",
		`{"input":3}`:         "invalid_type input",
		`{"input":["` + strings.Repeat(`a","`, maxInputs) + `a"]}`: "invalid_value input",
		`{"input":"a","dimensions":0}`:                             "invalid_value dimensions",
		`{"input":"a","dimensions":"3"}`:                           "invalid_type dimensions",
		`{"input":"a","encoding_format":"f16"}`:                    "invalid_value encoding_format",
		`{"input":"a","encoding_format":3}`:                        "invalid_type encoding_format",
	} {
		_, err := ParseEmbedding(scanned(t, request))
		if err == nil || err.Code+" "+err.Param != want || err.Status() != 400 {
			t.Errorf("%.60s: %+v, want %s", request, err, want)
		}
	}
}

func TestEmbedding_AsksTheEngine(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{"model":"m","input":"a","user":"u"}`:                                  `{"input":"a","encoding_format":"base64"}`,
		`{"input":["a","b"],"encoding_format":"float","dimensions":2,"ttl":60}`: `{"input":["a","b"],"encoding_format":"base64"}`,
		`{"input":[[1,2],[3]],"encoding_format":null,"embd_normalize":2}`:       `{"input":[[1,2],[3]],"encoding_format":"base64"}`,
	} {
		body := scanned(t, request)
		e, err := ParseEmbedding(body)
		if err != nil {
			t.Fatal(err)
		}
		up := LlamaServer{}.Embeddings(body, e)
		if string(up.Body) != want || up.Path != "/v1/embeddings" {
			t.Errorf("%s becomes %s %s", request, up.Path, up.Body)
		}
	}
}

func TestEmbedding_Body(t *testing.T) {
	t.Parallel()
	answer := `{"object":"list","data":[{"embedding":"` + packed(0.6, 0, -0.8) + `","index":1},{"embedding":"` + packed(0.1, 1e-9, -1) +
		`","index":0}],"usage":{"prompt_tokens":5,"total_tokens":5},"model":"x"}`
	got, bad := LlamaServer{}.Embedded([]byte(answer), 2)
	if bad != nil {
		t.Fatal(bad)
	}
	const head, tail = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":`, `}],"model":"lmcaddy/\"m\"","usage":{"prompt_tokens":5,"total_tokens":5}}`
	const second = `},{"object":"embedding","index":1,"embedding":`
	for name, tt := range map[string]struct {
		e    Embedding
		want string
	}{
		"numbers": {Embedding{}, head + `[0.1,1e-09,-1]` + second + `[0.6,0,-0.8]` + tail},
		"base64":  {Embedding{Base64: true}, head + `"` + packed(0.1, 1e-9, -1) + `"` + second + `"` + packed(0.6, 0, -0.8) + `"` + tail},
		"all":     {Embedding{Dimensions: 3}, head + `[0.1,1e-09,-1]` + second + `[0.6,0,-0.8]` + tail},
		"two":     {Embedding{Dimensions: 2}, head + `[1,1e-08]` + second + `[1,0]` + tail},
	} {
		body, err := EmbeddingBody(&tt.e, `lmcaddy/"m"`, got)
		if err != nil || !json.Valid(body) {
			t.Fatalf("%s: %v %s", name, err, body)
		}
		if diff := cmp.Diff(tt.want, string(body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, bad = EmbeddingBody(&Embedding{Dimensions: 4}, "m", got)
	if bad == nil || bad.Param != "dimensions" || bad.Code != "invalid_value" || !strings.Contains(bad.Message, "4") || !strings.Contains(bad.Message, "3") {
		t.Errorf("too many dimensions: %+v", bad)
	}
}

func TestEmbedding_ShortenedVectorsAreUnitVectors(t *testing.T) {
	t.Parallel()
	short := shortened(vector(3, 4, 12), 2)
	if diff := cmp.Diff(vector(0.6, 0.8), short); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(vector(0, 0), shortened(vector(0, 0, 1), 2)); diff != "" {
		t.Errorf("nothing is left (-want +got):\n%s", diff)
	}
}

func TestEmbedded_Nonsense(t *testing.T) {
	t.Parallel()
	item := func(index, embedding string) string { return `{"index":` + index + `,"embedding":` + embedding + `}` }
	good := `"` + packed(1) + `"`
	for name, data := range map[string]string{
		"no list":     `3`,
		"too few":     `[` + item("0", good) + `]`,
		"too many":    `[` + item("0", good) + `,` + item("1", good) + `,` + item("2", good) + `]`,
		"twice":       `[` + item("0", good) + `,` + item("0", good) + `]`,
		"twice, too":  `[` + item("0", good) + `,` + item("1", good) + `,` + item("0", good) + `]`,
		"negative":    `[` + item("0", good) + `,` + item("-1", good) + `]`,
		"no base64":   `[` + item("0", good) + `,` + item("1", `"?"`) + `]`,
		"numbers":     `[` + item("0", good) + `,` + item("1", `[1]`) + `]`,
		"empty":       `[` + item("0", good) + `,` + item("1", `""`) + `]`,
		"three bytes": `[` + item("0", good) + `,` + item("1", `"AAAA"`) + `]`,
		"no number":   `[` + item("0", good) + `,` + item("1", `"`+packed(float32(math.NaN()))+`"`) + `]`,
	} {
		if _, err := (LlamaServer{}).Embedded([]byte(`{"data":`+data+`}`), 2); err == nil || err.Kind != KindEngineFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (LlamaServer{}).Embedded([]byte(`{"data":[`), 1); err == nil {
		t.Error("half an answer is taken")
	}
}

func TestFault_TooLongAnInputIsAnOverflow(t *testing.T) {
	t.Parallel()
	const said = `{"error":{"code":500,"message":"input (1201 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}`
	e := (&Embedding{}).Refine(LlamaServer{}.Fault(500, []byte(said)))
	if e.Kind != KindContextOverflow || e.Status() != 400 || e.Tokens != 1201 || e.Limit != 512 || e.Param != "input" {
		t.Errorf("%+v", e)
	}
	for _, message := range []string{"input (1 tokens) is fine", "input (99999999999999999999 tokens) is too large to process (current batch size: 1)", ""} {
		if _, _, ok := llamaTooLong(message); ok {
			t.Errorf("%q is taken for it", message)
		}
	}
}

// FuzzAnswers: whatever an engine answers is read without a panic, and what comes of it is JSON.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"data":[{"embedding":"`+packed(1, 2)+`","index":0}],"usage":{"prompt_tokens":5}}`), 1, 1)
	f.Add([]byte(`{"results":[{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":-1e99}]}`), 2, 1)
	f.Add([]byte(`{"results":[{"index":0,"relevance_score":1e999}]}`), 1, 1)
	f.Fuzz(func(t *testing.T, answer []byte, n, dimensions int) {
		if n < 1 || n > 50 || dimensions < 0 {
			return
		}
		if got, err := (LlamaServer{}).Embedded(answer, n); err == nil {
			for _, isBase64 := range []bool{false, true} {
				body, err := EmbeddingBody(&Embedding{Dimensions: dimensions, Base64: isBase64}, "m", got)
				if err == nil && !json.Valid(body) {
					t.Fatalf("not JSON: %s", body)
				}
			}
		}
		if got, err := (LlamaServer{}).Reranked(answer, n); err == nil {
			body := RerankBody(&Rerank{Documents: make([]string, n), TopN: n, ReturnDocuments: true}, "m", got)
			if !json.Valid(body) {
				t.Fatalf("not JSON: %s", body)
			}
		}
	})
}
