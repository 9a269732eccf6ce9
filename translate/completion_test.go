package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// TestCompletion_Requests keeps what each request becomes: one upstream request for each candidate of each prompt.
func TestCompletion_Requests(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, raw := range []string{
		`{"model":"m","prompt":"Hello"}`,
		`{"model":"m","prompt":["Hello","you\n"],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[1,2,3],"stop":"end","temperature":0.70,"unknown":{"a":[1]}}`,
		`{"prompt":[[1,2],[3]],"n":2,"seed":41,"ttl":60}`,
		`{"prompt":"Hello","best_of":3,"n":2,"seed":4294967294}`,
		`{"prompt":"Hello","logprobs":0,"stop":["a","","b"]}`,
		`{"prompt":"Hello","logprobs":5,"echo":false,"seed":-1}`,
		`{"prompt":"fn main() {","suffix":"}\n","max_tokens":-5,"user":"u"}`,
		`{"prompt":"Hello","echo":true,"max_tokens":0,"stop":null,"n":null,"best_of":null,"logprobs":null,"suffix":null,"seed":null}`,
		`{"prompt":"Hello","max_completion_tokens":3,"max_tokens":9,"return_progress":false,"response_fields":["prompt"],"stop":[]}`,
		`{"prompt":"","n_predict":3}`,
	} {
		body := scanned(t, raw)
		c, err := openai.ParseCompletion(body, caps)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		fmt.Fprintf(&all, "%s\n", raw)
		for prompt := range c.Prompts {
			for candidate := range c.BestOf {
				up := llamaserver.Wire{}.Completion(body, c, prompt, candidate)
				if !json.Valid(bytes.Join(up.Body, nil)) {
					t.Errorf("not JSON: %s", bytes.Join(up.Body, nil))
				}
				fmt.Fprintf(&all, "\t%s %s\n", up.Path, bytes.Join(up.Body, nil))
			}
		}
	}
	golden(t, filepath.Join("testdata", "completions.golden"), []byte(all.String()))
}

// FuzzRequests: no request makes the parsers panic, and what they take becomes JSON.
func FuzzRequests(f *testing.F) {
	for _, body := range append(bodies, `{"prompt":["a",[1]],"n":2}`, `{"input":["a"],"dimensions":3}`, `{"query":"a","documents":["b",{"text":"c"}]}`,
		`{"prompt":[[1],[2,3]],"best_of":2,"logprobs":1,"stop":["a"],"suffix":"b","seed":-7}`) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, bad := jsonbody.Scan(raw)
		if bad != nil {
			return
		}
		var made [][]byte
		if c, err := openai.ParseCompletion(body, caps); err == nil {
			made = append(made, bytes.Join(llamaserver.Wire{}.Completion(body, c, len(c.Prompts)-1, c.BestOf-1).Body, nil))
		}
		if e, err := openai.ParseEmbedding(body); err == nil {
			made = append(made, bytes.Join(llamaserver.Wire{}.Embeddings(body, e).Body, nil))
		}
		if r, err := openai.ParseRerank(body); err == nil {
			made = append(made, bytes.Join(llamaserver.Wire{}.Rerank(body, r).Body, nil))
		}
		for _, m := range made {
			if !json.Valid(m) {
				t.Fatalf("not JSON: %s", m)
			}
		}
	})
}
