package api

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestOllamaEmbed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinyembed": {ContextLength: 256}}
	})
	link(t, embedding, filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyembed", "e.gguf"))
	asks := func(path, more string) answer {
		t.Helper()
		return s.do("POST", path, `{"model":"tinyembed:latest"`+more+`}`)
	}
	long := strings.Repeat("word ", 2000)
	expect(t, asks("/api/embed", ""), 200, map[string]string{"embeddings": "[]", "model": "tinyembed:latest"})
	expect(t, asks("/api/embed", `,"input":""`), 200, map[string]string{"embeddings": "[]"})
	expect(t, asks("/api/embed", `,"input":[]`), 200, map[string]string{"embeddings": "[]"})
	expect(t, asks("/api/embeddings", `,"prompt":""`), 200, map[string]string{"embedding": "[]"})
	one := asks("/api/embed", `,"input":"hi","keep_alive":"5m","options":{"num_gpu":1}`)
	expect(t, one, 200, map[string]string{"embeddings.#": "1", "prompt_eval_count": "1"})
	if gjson.Get(one.body, "total_duration").Int() <= 0 || len(gjson.Get(one.body, "embeddings.0").Array()) < 2 {
		t.Error(one.body)
	}
	expect(t, asks("/api/embeddings", `,"prompt":"hi"`), 200, map[string]string{"embedding": gjson.Get(one.body, "embeddings.0").Raw})
	expect(t, asks("/api/embed", `,"input":["hi","there"],"dimensions":2`), 200, map[string]string{"embeddings.#": "2", "embeddings.0.#": "2"})
	expect(t, asks("/api/embed", `,"input":["hi"],"dimensions":99999`), 200, map[string]string{"embeddings.0": gjson.Get(one.body, "embeddings.0").Raw})
	many := `"` + strings.Repeat(`hi","`, 70) + `hi"`
	expect(t, asks("/api/embed", `,"input":[`+many+`]`), 200, map[string]string{"embeddings.#": "71"})
	expect(t, asks("/api/embed", `,"input":["hi","`+long+`","there"]`), 200, map[string]string{"embeddings.#": "3", "embeddings.0": gjson.Get(one.body, "embeddings.0").Raw})
	for more, want := range map[string]string{
		`,"truncate":false,"input":"` + long + `"`: "the input length exceeds the context length",
		`,"input":1`:                     "invalid input type",
		`,"input":{}`:                    "invalid input type",
		`,"input":["a",1]`:               "invalid input type",
		`,"input":["a",null]`:            "invalid input type",
		`,"input":["a",""]`:              "input[1]",
		`,"input":"a","input":"b"`:       "given twice",
		`,"input":"a","dimensions":-1`:   "dimensions",
		`,"input":"a","dimensions":1e99`: "dimensions",
		`,"input":"a","truncate":"yes"`:  "truncate",
	} {
		if got := asks("/api/embed", more); got.status != 400 || !strings.Contains(gjson.Get(got.body, "error").Str, want) {
			t.Errorf("%.100s: %d %s", more, got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/embed", `{"model":"tinychat","input":"a"}`); got.status != 400 || !strings.Contains(got.body, "does not support embeddings") {
		t.Errorf("%d %s", got.status, got.body)
	}
	starts := 0
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Started {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("the model was loaded %d times", starts)
	}
}

// TestOllamaEmbed_ATextThatIsCutLoadsTheModelOnce: also one that isn't kept.
func TestOllamaEmbed_ATextThatIsCutLoadsTheModelOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinyembed": {ContextLength: 256}}
	})
	link(t, embedding, filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyembed", "e.gguf"))
	got := s.do("POST", "/api/embed", `{"model":"tinyembed","keep_alive":0,"input":"`+strings.Repeat("word ", 3000)+`"}`)
	expect(t, got, 200, map[string]string{"embeddings.#": "1"})
	testkit.Eventually(t, "it is unloaded", func() bool { return !s.instance().Exists() })
	starts := 0
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Started {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("the model was loaded %d times", starts)
	}
}
