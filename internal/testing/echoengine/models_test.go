package echoengine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// A model of the engine is listed, loaded and unloaded as any other. Nothing can be chosen of its load, so nothing is told of
// what others let one choose.
func TestModels(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post := func(path, body string) string {
		t.Helper()
		status, answer := s.do("POST", path, body)
		if status != 200 {
			t.Fatalf("%s %s: %d %s", path, body, status, answer)
		}
		return answer
	}
	get := func(path, query string) string {
		t.Helper()
		status, answer := s.do("GET", path, "")
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
		return gjson.Get(answer, query).Raw
	}
	is := func(path, query, want string) {
		t.Helper()
		if diff := cmp.Diff(want, get(path, query)); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", path, query, diff)
		}
	}
	is("/v1/models", "data", `[]`)
	is("/api/v0/models", "data.#.state", `["not-loaded","not-loaded"]`)
	const fields = `{"model":"canyon","context_length":7,"eval_batch_size":3,"flash_attention":true,"num_experts":4,"offload_kv_cache_to_gpu":true,"echo_load_config":true}`
	loaded := post("/api/v1/models/load", fields)
	if got, want := gjson.Get(loaded, "load_config").Raw, `{"context_length":40}`; got != want {
		t.Errorf("load_config %s, want %s", got, want)
	}
	is("/v1/models", "data.#.id", `["echo/canyon"]`)
	is("/v1/models/canyon", "id", `"echo/canyon"`)
	is("/api/v1/models", "models.0.loaded_instances", `[{"id":"echo/canyon","config":{"context_length":40}}]`)
	is("/api/v1/models", "models.#.[key,type,format,architecture,size_bytes,max_context_length]",
		`[["echo/canyon","llm","echo","echo",17,40],["echo/ruler","embedding","echo",21,1000]]`)
	is("/api/v1/models", "models.0.capabilities", `{"vision":false,"trained_for_tool_use":true}`)
	is("/api/v0/models/canyon", "{state,compatibility_type,loaded_context_length,capabilities}",
		`{"state":"loaded","compatibility_type":"echo","loaded_context_length":40,"capabilities":["tool_use"]}`)
	post("/api/v1/models/unload", `{"instance_id":"echo/canyon"}`)
	is("/v1/models", "data", `[]`)
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, tt := range map[string]struct{ body, want string }{
		"one text":  {`{"model":"ruler","input":"a b"}`, `[[2,3]]`},
		"two texts": {`{"model":"ruler","input":["a b","c"]}`, `[[2,3],[1,1]]`},
		"shorter":   {`{"model":"ruler","input":"a b","dimensions":1}`, `[[1]]`}, // of length 1
		"base64":    {`{"model":"ruler","input":"c","encoding_format":"base64"}`, `["AACAPwAAgD8="]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/v1/embeddings", "/api/v0/embeddings"} {
				status, body := s.do("POST", path, tt.body)
				if got := gjson.Get(body, "data.#.embedding").Raw; status != 200 || got != tt.want {
					t.Errorf("%s: %d %s, want %s", path, status, body, tt.want)
				}
			}
		})
	}
}

// The operator's arguments for the engine reach its process.
func TestEngine_Args(t *testing.T) {
	t.Parallel()
	s := serve(t, "--greeting", "oh")
	if _, body := s.native("hello", ""); gjson.Get(body, "output.0.content").Str != "oh hello" {
		t.Errorf("answer %s", body)
	}
}
