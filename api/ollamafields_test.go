package api

import (
	"slices"
)

// ollamaOptions are the members of the object "options".
var ollamaOptions = []field{
	{"options.temperature", "0.3", `"x"`},
	{"options.top_p", "0.5", `"x"`},
	{"options.top_k", "7", `"x"`},
	{"options.min_p", "0.2", `"x"`},
	{"options.typical_p", "0.5", `"x"`},
	{"options.repeat_penalty", "1.2", `"x"`},
	{"options.repeat_last_n", "32", `"x"`},
	{"options.presence_penalty", "0.5", `"x"`},
	{"options.frequency_penalty", "0.5", `"x"`},
	{"options.mirostat", "1", `"x"`},
	{"options.mirostat_tau", "4", `"x"`},
	{"options.mirostat_eta", "0.2", `"x"`},
	{"options.seed", "7", `"x"`},
	{"options.stop", `["zebra"]`, "1"},
	{"options.num_predict", "5", `"x"`},
	{"options.num_ctx", "4096", `"x"`},
	{"options.num_keep", "4", `"x"`},
	{"options.num_batch", "64", `"x"`},
	{"options.num_gpu", "1", `"x"`},
	{"options.main_gpu", "0", `"x"`},
	{"options.num_thread", "2", `"x"`},
	{"options.use_mmap", "true", `"x"`},
	{"options.use_mlock", "true", `"x"`},
	{"options.numa", "false", `"x"`},
	{"options.low_vram", "false", `"x"`},
	{"options.draft_num_predict", "4", `"x"`},
	{"options.penalize_newline", "false", `"x"`},
	{"options.tfs_z", "1", `"x"`},
	{"options.f16_kv", "true", `"x"`},
	{"options.vocab_only", "false", `"x"`},
	{"options.logits_all", "false", `"x"`},
	{"options.embedding_only", "false", `"x"`},
}

// isOnlyChecked reports whether a field has no effect, although a value of a wrong type is refused.
func isOnlyChecked(f *family, name string) bool {
	return f.path != "/api/embed" && slices.Contains([]string{
		"truncate", "shift", "options.num_keep", "options.num_batch", "options.num_gpu", "options.main_gpu", "options.num_thread",
		"options.use_mmap", "options.use_mlock", "options.numa", "options.low_vram", "options.draft_num_predict", "options.penalize_newline",
		"options.tfs_z", "options.f16_kv", "options.vocab_only", "options.logits_all", "options.embedding_only",
	}, name)
}

// ollamaCommon are the fields of chats and of prompts.
var ollamaCommon = []field{
	{"stream", "false", `"x"`},
	{"format", `"json"`, "1"},
	{"think", "false", "1"},
	{"keep_alive", `"10m"`, `"x"`},
	{"logprobs", "true", `"x"`},
	{"top_logprobs", "2", `"x"`},
	{"truncate", "true", `"x"`},
	{"shift", "true", `"x"`},
	{"preset", `"nowhere"`, "1"},
	{"options", "{}", "1"},
	{"_debug_render_only", "true", `"x"`},
}

// ollamaFamilies are the endpoints of Ollama's API with fields. Without "stream", they stream.
var ollamaFamilies = []family{
	{
		"Ollama: chat", "ollama.md#fields", "/api/chat", `"model":"tinychat","messages":[{"role":"user","content":"hi"}]`,
		slices.Concat([]field{{"tools", aTool, "1"}}, ollamaCommon, ollamaOptions),
	},
	{
		"Ollama: generate", "ollama.md#fields", "/api/generate", `"model":"tinychat","prompt":"hi"`,
		slices.Concat([]field{
			{"system", `"Be brief."`, "1"},
			{"suffix", `"a"`, "1"},
			{"raw", "true", `"x"`},
			{"images", "[]", "1"},
			{"context", "[]", `"x"`},
			{"template", `"{{ .Prompt }}"`, "1"},
		}, ollamaCommon, ollamaOptions),
	},
	{
		"Ollama: embed", "ollama.md#fields", "/api/embed", `"model":"tinyembed","input":"hi"`,
		[]field{
			{"dimensions", "3", `"x"`},
			{"truncate", "false", `"x"`},
			{"keep_alive", `"10m"`, `"x"`},
			{"options", "{}", "1"},
			{"options.num_ctx", "512", `"x"`},
		},
	},
}
