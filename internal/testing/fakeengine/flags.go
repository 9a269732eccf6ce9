package fakeengine

import (
	"cmp"
	"slices"
	"strings"
)

// Flag is a command-line flag as --help shows it.
type Flag struct {
	// Names are all spellings, the short ones first.
	Names []string
	// Hint is the value's placeholder. Empty: the flag takes no value.
	Hint string
	// Help says what it does.
	Help string
	// Env is the variable that sets it, if any.
	Env string

	section string // the heading that begins with this flag
}

// flag reads a spelling such as "-c, --ctx-size N": the value's placeholder follows the first space that no comma precedes.
func flag(spelling, help, env string) Flag {
	names, hint := spelling, ""
	for i := 1; i < len(spelling); i++ {
		if spelling[i] == ' ' && spelling[i-1] != ',' {
			names, hint = spelling[:i], spelling[i+1:]
			break
		}
	}
	return Flag{Names: strings.Split(names, ", "), Hint: hint, Help: help, Env: env}
}

func section(title string, flags ...Flag) []Flag {
	flags[0].section = title
	return flags
}

// flags is an abridged list of the flags of llama-server 0.7.0, in its order, with the script's changes.
func (s *Script) flags() []Flag {
	var all []Flag
	heading := ""
	for _, f := range slices.Concat(commonFlags(), samplingFlags(), speculativeFlags(), serverFlags()) {
		heading = cmp.Or(f.section, heading)
		if s.NoSockets && slices.Contains(f.Names, "--host") {
			f.Help = "ip address to listen (default: 127.0.0.1)"
		}
		f.Names = slices.DeleteFunc(f.Names, func(n string) bool { return slices.Contains(s.RemoveFlags, n) })
		if len(f.Names) > 0 {
			f.section, heading = heading, ""
			all = append(all, f)
		}
	}
	if len(s.Devices) > 0 {
		all = append(all, listDevices...)
	}
	return append(all, s.AddFlags...)
}

const cacheTypes = "\nallowed values: f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1\n(default: f16)"

func commonFlags() []Flag {
	return section("common params",
		flag("-h, --help, --usage", "print usage and exit", ""),
		flag("--version", "show version and build info", ""),
		flag("-t, --threads N", "number of CPU threads to use during generation (default: <num_cpus>)", "LLAMA_ARG_THREADS"),
		flag("-tb, --threads-batch N", "number of threads to use during batch and prompt processing (default: same as --threads)", ""),
		flag("-c, --ctx-size N", "size of the prompt context (default: 0, 0 = loaded from model)", "LLAMA_ARG_CTX_SIZE"),
		flag("-n, --predict, --n-predict N", "number of tokens to predict (default: -1, -1 = infinity)", "LLAMA_ARG_N_PREDICT"),
		flag("-b, --batch-size N", "logical maximum batch size (default: 2048)", "LLAMA_ARG_BATCH"),
		flag("-ub, --ubatch-size N", "physical maximum batch size (default: 512)", "LLAMA_ARG_UBATCH"),
		flag("--keep N", "number of tokens to keep from the initial prompt (default: 0, -1 = all)", ""),
		flag("--swa-full", "use full-size SWA cache (default: false)", "LLAMA_ARG_SWA_FULL"),
		flag("-fa, --flash-attn [on|off|auto]", "set Flash Attention use ('on', 'off', or 'auto', default: 'auto')", "LLAMA_ARG_FLASH_ATTN"),
		flag("--rope-scaling {none,linear,yarn}",
			"RoPE frequency scaling method, defaults to linear unless specified by the model", "LLAMA_ARG_ROPE_SCALING_TYPE"),
		flag("--rope-freq-base N", "RoPE base frequency, used by NTK-aware scaling (default: loaded from model)", "LLAMA_ARG_ROPE_FREQ_BASE"),
		flag("--rope-freq-scale N", "RoPE frequency scaling factor, expands context by a factor of 1/N", "LLAMA_ARG_ROPE_FREQ_SCALE"),
		flag("-kvo, --kv-offload, -nkvo, --no-kv-offload", "whether to enable KV cache offloading (default: enabled)", "LLAMA_ARG_KV_OFFLOAD"),
		flag("-ctk, --cache-type-k TYPE", "KV cache data type for K"+cacheTypes, "LLAMA_ARG_CACHE_TYPE_K"),
		flag("-ctv, --cache-type-v TYPE", "KV cache data type for V"+cacheTypes, "LLAMA_ARG_CACHE_TYPE_V"),
		flag("-lm, --load-mode MODE",
			"model loading mode (default: auto)\n- auto: mmap, unless a device does not support it\n- none: no special loading mode\n"+
				"- mmap: memory-map model\n- mlock: force system to keep model in RAM\n- mmap+mlock: mmap + mlock\n"+
				"- dio: use DirectIO if available\n", "LLAMA_ARG_LOAD_MODE"),
		flag("-dev, --device <dev1,dev2,..>", "comma-separated list of devices to use for offloading (none = don't offload)", "LLAMA_ARG_DEVICE"),
		flag("-cmoe, --cpu-moe", "keep all Mixture of Experts (MoE) weights in the CPU", "LLAMA_ARG_CPU_MOE"),
		flag("-ncmoe, --n-cpu-moe N", "keep the Mixture of Experts (MoE) weights of the first N layers in the CPU", "LLAMA_ARG_N_CPU_MOE"),
		flag("-ngl, --gpu-layers, --n-gpu-layers N",
			"max. number of layers to store in VRAM, either an exact number, 'auto', or 'all' (default: auto)", "LLAMA_ARG_N_GPU_LAYERS"),
		flag("-sm, --split-mode {none,layer,row,tensor}", "how to split the model across multiple GPUs", "LLAMA_ARG_SPLIT_MODE"),
		flag("-ts, --tensor-split N0,N1,N2,...",
			"fraction of the model to offload to each GPU, comma-separated list of proportions, e.g. 3,1", "LLAMA_ARG_TENSOR_SPLIT"),
		flag("-mg, --main-gpu INDEX", "the GPU to use for the model (default: 0)", "LLAMA_ARG_MAIN_GPU"),
		flag("--rpc SERVERS", "comma-separated list of RPC servers (host:port)", "LLAMA_ARG_RPC"),
		flag("-fit, --fit [on|off]", "whether to adjust unset arguments to fit in device memory ('on' or 'off', default: 'on')", "LLAMA_ARG_FIT"),
		flag("--override-kv KEY=TYPE:VALUE,...",
			"advanced option to override model metadata by key. to specify multiple overrides, use comma-separated values.\n"+
				"types: int, float, bool, str. example: --override-kv tokenizer.ggml.add_bos_token=bool:false", ""),
		flag("--lora FNAME", "path to LoRA adapter (use comma-separated values to load multiple adapters)", ""),
		flag("--lora-init-without-apply", "load LoRA adapters without applying them (apply later via POST /lora-adapters) (default: disabled)", ""),
		flag("-m, --model FNAME", "model path to load", "LLAMA_ARG_MODEL"),
		flag("-mu, --model-url MODEL_URL", "model download url (default: unused)", "LLAMA_ARG_MODEL_URL"),
		flag("-hf, -hfr, --hf-repo <user>/<model>[:quant]", "Hugging Face model repository\n(default: unused)", "LLAMA_ARG_HF_REPO"),
		flag("--log-disable", "Log disable", ""),
		flag("--log-file FNAME", "Log to file", "LLAMA_ARG_LOG_FILE"),
		flag("--log-jsonl, --no-log-jsonl", "Log as JSONL (one JSON object per line) to stdout (default: disabled)", "LLAMA_ARG_LOG_JSONL"),
		flag("--log-colors [on|off|auto]", "Set colored logging ('on', 'off', or 'auto', default: 'auto')", "LLAMA_ARG_LOG_COLORS"),
		flag("-v, --verbose, --log-verbose", "Set verbosity level to infinity (i.e. log all messages, useful for debugging)", ""),
		flag("--offline", "Offline mode: forces use of cache, prevents network access", "LLAMA_ARG_OFFLINE"),
		flag("-lv, --verbosity, --log-verbosity N", "Set the verbosity threshold (default: 3)\n", "LLAMA_ARG_LOG_VERBOSITY"),
		flag("--log-prefix, --no-log-prefix", "Enable prefix in log messages", "LLAMA_ARG_LOG_PREFIX"),
		flag("--log-timestamps, --no-log-timestamps", "Enable timestamps in log messages", "LLAMA_ARG_LOG_TIMESTAMPS"),
	)
}

func samplingFlags() []Flag {
	return section("sampling params",
		flag("-s, --seed SEED", "RNG seed (default: -1, use random seed for -1)", ""),
		flag("--ignore-eos", "ignore end of stream token and continue generating (implies --logit-bias EOS-inf)", ""),
		flag("--temp, --temperature N", "temperature (default: 0.80)", "LLAMA_ARG_TEMPERATURE"),
		flag("--top-k N", "top-k sampling (default: 40, 0 = disabled)", "LLAMA_ARG_TOP_K"),
		flag("--top-p N", "top-p sampling (default: 0.95, 1.0 = disabled)", "LLAMA_ARG_TOP_P"),
		flag("--min-p N", "min-p sampling (default: 0.05, 0.0 = disabled)", "LLAMA_ARG_MIN_P"),
		flag("--repeat-penalty N", "penalize repeat sequence of tokens (default: 1.00, 1.0 = disabled)", "LLAMA_ARG_REPEAT_PENALTY"),
		flag("--presence-penalty N", "repeat alpha presence penalty (default: 0.00, 0.0 = disabled)", "LLAMA_ARG_PRESENCE_PENALTY"),
		flag("--frequency-penalty N", "repeat alpha frequency penalty (default: 0.00, 0.0 = disabled)", "LLAMA_ARG_FREQUENCY_PENALTY"),
		flag("--grammar GRAMMAR", "BNF-like grammar to constrain generations (default: '')", ""),
	)
}

func serverFlags() []Flag {
	return section("example-specific params",
		flag("-cram, --cache-ram N", "set the maximum cache size in MiB (default: 8192, -1 - no limit, 0 - disable)", "LLAMA_ARG_CACHE_RAM"),
		flag("-kvu, --kv-unified, -no-kvu, --no-kv-unified",
			"use single unified KV buffer shared across all sequences (default: enabled if number of slots is auto)", "LLAMA_ARG_KV_UNIFIED"),
		flag("--cache-idle-slots, --no-cache-idle-slots",
			"save idle slots to the prompt cache on new task (default: enabled, requires cache-ram)", "LLAMA_ARG_CACHE_IDLE_SLOTS"),
		flag("--context-shift, --no-context-shift",
			"whether to use context shift on infinite text generation (default: disabled)", "LLAMA_ARG_CONTEXT_SHIFT"),
		flag("--warmup, --no-warmup", "whether to perform warmup with an empty run (default: enabled)", ""),
		flag("--pooling {none,mean,cls,last,rank}", "pooling type for embeddings, use model default if unspecified", "LLAMA_ARG_POOLING"),
		flag("-np, --parallel N", "number of server slots (default: -1, -1 = auto)", "LLAMA_ARG_N_PARALLEL"),
		flag("-cb, --cont-batching, -nocb, --no-cont-batching",
			"whether to enable continuous batching (a.k.a dynamic batching) (default: enabled)", "LLAMA_ARG_CONT_BATCHING"),
		flag("-mm, --mmproj FILE",
			"path to a multimodal projector file. see tools/mtmd/README.md\nnote: if -hf is used, this argument can be omitted", "LLAMA_ARG_MMPROJ"),
		flag("--mmproj-auto, --no-mmproj, --no-mmproj-auto",
			"whether to use multimodal projector file (if available), useful when using -hf (default: enabled)", "LLAMA_ARG_MMPROJ_AUTO"),
		flag("--mmproj-offload, --no-mmproj-offload",
			"whether to enable GPU offloading for multimodal projector (default: enabled)", "LLAMA_ARG_MMPROJ_OFFLOAD"),
		flag("-a, --alias STRING", "set model name aliases, comma-separated (to be used by API)", "LLAMA_ARG_ALIAS"),
		flag("--host HOST",
			"IP addresses to listen on, comma-separated, or UNIX socket paths ending in .sock (default: 127.0.0.1)", "LLAMA_ARG_HOST"),
		flag("--port PORT", "port to listen (default: 9931)", "LLAMA_ARG_PORT"),
		flag("--cors-origins ORIGINS", "comma-separated list of allowed origins for CORS (default: *)", "LLAMA_ARG_CORS_ORIGINS"),
		flag("--ui, --webui, --no-ui, --no-webui", "whether to enable the Web UI (default: enabled)", "LLAMA_ARG_UI"),
		flag("--embedding, --embeddings",
			"restrict to only support embedding use case; use only with dedicated embedding models (default: disabled)", "LLAMA_ARG_EMBEDDINGS"),
		flag("--rerank, --reranking", "enable reranking endpoint on server (default: disabled)", "LLAMA_ARG_RERANKING"),
		flag("--api-key KEY",
			"API key to use for authentication, multiple keys can be provided as a comma-separated list (default: none)", "LLAMA_API_KEY"),
		flag("--api-key-file FNAME",
			"path to file containing API keys, one per line; lines starting with a hash are treated as comments (default: none)", "LLAMA_ARG_API_KEY_FILE"),
		flag("--chat-template-kwargs STRING",
			"sets additional params for the json template parser, must be a valid json object string", "LLAMA_ARG_CHAT_TEMPLATE_KWARGS"),
		flag("-to, --timeout N", "server read/write timeout in seconds (default: 3600)", "LLAMA_ARG_TIMEOUT"),
		flag("--sse-ping-interval N", "server SSE ping interval in seconds (-1 = disabled, default: 30)", "LLAMA_ARG_SSE_PING_INTERVAL"),
		flag("--threads-http N", "number of threads used to process HTTP requests (default: -1)", "LLAMA_ARG_THREADS_HTTP"),
		flag("--cache-prompt, --no-cache-prompt", "whether to enable prompt caching (default: enabled)", "LLAMA_ARG_CACHE_PROMPT"),
		flag("--cache-reuse N", "min chunk size to attempt reusing from the cache via KV shifting (default: 0)", "LLAMA_ARG_CACHE_REUSE"),
		flag("--metrics", "enable prometheus compatible metrics endpoint (default: disabled)", "LLAMA_ARG_ENDPOINT_METRICS"),
		flag("--props", "enable changing global properties via POST /props (default: disabled)", "LLAMA_ARG_ENDPOINT_PROPS"),
		flag("--slots, --no-slots", "expose slots monitoring endpoint (default: enabled)", "LLAMA_ARG_ENDPOINT_SLOTS"),
		flag("--slot-save-path PATH", "path to save slot kv cache (default: disabled)", ""),
		flag("--jinja, --no-jinja", "whether to use jinja template engine for chat (default: enabled)", "LLAMA_ARG_JINJA"),
		flag("--reasoning-format FORMAT",
			"controls whether thought tags are allowed and/or extracted from the response\n(default: auto)", "LLAMA_ARG_THINK"),
		flag("-rea, --reasoning [on|off|auto]",
			"Use reasoning/thinking in the chat ('on', 'off', or 'auto', default: 'auto' (detect from template))", "LLAMA_ARG_REASONING"),
		flag("--reasoning-budget N",
			"token budget for thinking: -1 for unrestricted, 0 for immediate end, N>0 for token budget (default: -1)", "LLAMA_ARG_THINK_BUDGET"),
		flag("--chat-template JINJA_TEMPLATE",
			"set custom jinja chat template (default: template taken from model's metadata)", "LLAMA_ARG_CHAT_TEMPLATE"),
		flag("--chat-template-file JINJA_TEMPLATE_FILE",
			"set custom jinja chat template file (default: template taken from model's metadata)", "LLAMA_ARG_CHAT_TEMPLATE_FILE"),
		flag("--sleep-idle-seconds SECONDS", "number of seconds of idleness after which the server will sleep (default: -1; -1 = disabled)", ""),
	)
}

// removed begins the help of flags that are shown and refused: looking for a name in --help isn't enough.
const removed = "the argument has been removed. use "

func speculativeFlags() []Flag {
	return section("speculative params",
		flag("--spec-draft-model, -md, --model-draft FNAME", "draft model for speculative decoding (default: unused)", "LLAMA_ARG_SPEC_DRAFT_MODEL"),
		flag("--spec-draft-ngl, -ngld, --gpu-layers-draft, --n-gpu-layers-draft N",
			"max. number of draft model layers to store in VRAM (default: auto)", "LLAMA_ARG_N_GPU_LAYERS_DRAFT"),
		flag("--spec-draft-type-k, -ctkd, --cache-type-k-draft TYPE",
			"KV cache data type for K for the draft model"+cacheTypes, "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K"),
		flag("--spec-draft-type-v, -ctvd, --cache-type-v-draft TYPE",
			"KV cache data type for V for the draft model"+cacheTypes, "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V"),
		flag("--spec-draft-device, -devd, --device-draft <dev1,dev2,..>",
			"comma-separated list of devices to use for offloading the draft model", ""),
		flag("--spec-draft-n-max N", "number of tokens to draft for speculative decoding (default: 3)", "LLAMA_ARG_SPEC_DRAFT_N_MAX"),
		flag("--spec-draft-n-min N", "minimum number of draft tokens to use for speculative decoding (default: 0)", "LLAMA_ARG_SPEC_DRAFT_N_MIN"),
		flag("--spec-draft-p-min, --draft-p-min P",
			"minimum speculative decoding probability (greedy) (default: 0.00)", "LLAMA_ARG_SPEC_DRAFT_P_MIN"),
		flag("--spec-type none,draft-simple,draft-eagle3,draft-mtp,draft-dflash,draft-dspark,ngram-simple,ngram-map-k,ngram-map-k4v,ngram-mod,ngram-cache",
			"comma-separated list of types of speculative decoding to use (default: none)\n", "LLAMA_ARG_SPEC_TYPE"),
		flag("--draft, --draft-n, --draft-max N", removed+"--spec-draft-n-max or --spec-ngram-mod-n-max", "LLAMA_ARG_DRAFT_MAX"),
		flag("--draft-min, --draft-n-min N", removed+"--spec-draft-n-min or --spec-ngram-mod-n-min", "LLAMA_ARG_DRAFT_MIN"),
		flag("--spec-ngram-size-n N", removed+"the respective --spec-ngram-*-size-n or --spec-ngram-mod-n-match", ""),
		flag("--spec-ngram-size-m N", removed+"the respective --spec-ngram-*-size-m", ""),
		flag("--spec-ngram-min-hits N", removed+"the respective --spec-ngram-*-min-hits", ""),
	)
}
