package ollama

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSynonyms(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"qwen3":                               "qwen3",
		"qwen3:latest":                        "qwen3:latest qwen3",
		"qwen3:4b":                            "qwen3:4b qwen3@4b qwen3-4b",
		"qwen3:4b-q4_K_M":                     "qwen3:4b-q4_K_M qwen3@4b-q4_K_M qwen3-4b@q4_K_M",
		"qwen/qwen3-4b":                       "qwen/qwen3-4b",
		"qwen/qwen3-4b:q8_0":                  "qwen/qwen3-4b:q8_0 qwen/qwen3-4b@q8_0",
		"library/qwen3:4b":                    "library/qwen3:4b qwen3@4b qwen3-4b",
		"registry.ollama.ai/library/qwen3:4b": "registry.ollama.ai/library/qwen3:4b qwen3@4b qwen3-4b",
		"hf.co/Qwen/Qwen3-4B-GGUF:Q4_K_M":     "hf.co/Qwen/Qwen3-4B-GGUF:Q4_K_M Qwen/Qwen3-4B-GGUF@Q4_K_M",
		"hf.co/Qwen/Qwen3-4B-GGUF":            "hf.co/Qwen/Qwen3-4B-GGUF Qwen/Qwen3-4B-GGUF",
		"huggingface.co/unsloth/x:UD-Q4_K_XL": "huggingface.co/unsloth/x:UD-Q4_K_XL unsloth/x@UD-Q4_K_XL",
		"https://huggingface.co/a/b":          "https://huggingface.co/a/b a/b",
		"other.example/a/b:c":                 "other.example/a/b:c",
		"qwen3@q4_k_m":                        "qwen3@q4_k_m",
		"":                                    "",
		":":                                   ":",
		"a/":                                  "a/",
		strings.Repeat("a", 300):              strings.Repeat("a", 300),
	} {
		if diff := cmp.Diff(want, strings.Join(Synonyms(name), " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSquashed(t *testing.T) {
	t.Parallel()
	for name, like := range map[string]string{
		"qwen3:4b": "qwen3-4b", "gemma3": "gemma-3-4b-it", "llama3.2:1b": "llama-3.2-1b-instruct", "qwen2.5-coder": "qwen2.5-coder-7b-instruct",
		"qwen2.5vl:3b": "qwen2.5-vl-3b-instruct", "gpt-oss:latest": "gpt-oss-20b", "mistral": "mistral-7b-instruct-v0.3", "phi4": "phi-4",
		"library/qwen3:30b-a3b-q8_0": "qwen3-30b-a3b", "nomic-embed-text:v1.5": "nomic-embed-text-v1.5",
	} {
		if got, want := ParseName(name).Squashed(), Squash(like); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"somebody/qwen3:4b", "hf.co/a/qwen3:4b", "other.example/library/qwen3"} {
		if got := ParseName(name).Squashed(); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestListed_LeadsBack(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"qwen/qwen3-4b", "qwen/qwen3-4b@q4_k_m", "gpt-4", "library/qwen3@4b"} {
		found := false
		for _, name := range Synonyms(Listed(key)) {
			_, bare, _ := strings.Cut(key, "/")
			found = found || name == key || name == bare
		}
		if !found {
			t.Errorf("%s is listed as %s, which means %q", key, Listed(key), Synonyms(Listed(key)))
		}
	}
}
