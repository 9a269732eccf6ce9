package command

import "github.com/spf13/cobra"

const (
	asksNothing = "leave it out"
	byEngine    = `the engine decides this by itself; "args" of the model in the Caddyfile overrides it (args --n-gpu-layers 20)`
	byDraft     = `name the draft model's key in the Caddyfile (model KEY { draft_model KEY })`
	chosenTags  = `put @ and the quantization behind the name, as in "lmcaddy get unsloth/Qwen3-4B-GGUF@Q8_0"`
	everyKind   = `"lmcaddy ls" lists all models, with a column for their types`
	oneAddress  = `--listen does this, as in "lmcaddy serve --listen 127.0.0.1:8080"`
	everyModel  = `it serves all models, and loads those that are asked for; --models-dir adds a folder of them`
	oneRelease  = `"lmcaddy runtime get llama.cpp" gets the newest release, and --version another`
)

// everydayFlags are flags of lms and ollama that the commands of ours with the same names haven't, and what to type instead.
var everydayFlags = map[string]map[string]string{
	"chat": {
		"verbose": "--stats prints tokens and times", "keepalive": "--ttl says how long the model stays loaded",
		"think":        "--reasoning on or off does this",
		"hidethinking": "only the answer goes to standard output, what the model thinks goes to standard error",
		"nowordwrap":   asksNothing, "insecure": asksNothing,
		"format": "the field response_format of the APIs does this", "truncate": "the endpoint /v1/embeddings embeds texts",
		"dimensions":         "the endpoint /v1/embeddings embeds texts",
		"dont-fetch-catalog": asksNothing, "system-prompt": "--system does this",
	},
	"get": {
		"yes": asksNothing, "y": asksNothing, "insecure": asksNothing, "select": chosenTags,
		"mlx": "name a repository that has the model as MLX", "gguf": "name a repository that has the model as GGUF",
	},
	"import": {
		"user-repo": "--repo PUBLISHER/NAME does this", "symbolic-link": "--link does this", "yes": asksNothing, "y": asksNothing,
	},
	"load": {
		"gpu": byEngine, "yes": asksNothing, "y": asksNothing, "exact": "names are always exact: leave it out",
		"local":                   "leave it out: only --host asks another machine",
		"speculative-draft-model": byDraft, "speculative-draft-simple": byDraft, "speculative-draft-mtp": byDraft,
		"no-speculative-draft-mtp": byDraft,
	},
	"log": {
		"source": "--engine adds what engines write", "s": "--engine adds what engines write",
		"stats":  "--level debug shows the tokens and times of each request",
		"filter": "what is asked and answered isn't in the log: the option inspect of the Caddyfile keeps the newest requests",
	},
	"ls": {
		"llm": everyKind, "embedding": everyKind, "detailed": `"lmcaddy show MODEL" shows all of a model`,
		"variants": "each variant is a model of its own, such as qwen/qwen3-4b@q8_0",
	},
	"serve": {"port": oneAddress, "p": oneAddress, "host": oneAddress, "address": oneAddress, "model": everyModel, "m": everyModel},
	"show": {
		"modelfile": "leave it out: the model's settings are shown", "parameters": `"lmcaddy config" shows the settings of models`,
		"system":  `system prompts are in presets, which "lmcaddy config" shows`,
		"license": asksNothing, "verbose": "--json prints everything", "v": "--json prints everything",
	},
	"runtime get": {
		"list": `"lmcaddy runtime ls" lists them`, "l": `"lmcaddy runtime ls" lists them`, "channel": oneRelease,
		"allow-incompatible": "--variant gets any build", "yes": asksNothing, "y": asksNothing,
	},
	"runtime remove": {"yes": asksNothing, "y": asksNothing, "dry-run": `"lmcaddy runtime ls" lists what there is`},
	"runtime select": {"latest": oneRelease},
	"runtime":        {"all": oneRelease, "a": oneRelease},
}

// everydaySubcommands are commands of lms below one that we have, too, and what to type instead.
var everydaySubcommands = map[string]string{
	"runtime update": oneRelease, "runtime list": `"lmcaddy runtime ls" lists them`,
	"runtime survey": `"lmcaddy doctor" looks at GPUs and memory`,
}

// everydayFlag says what to type instead of a flag of lms or ollama; empty: it is none.
func everydayFlag(cmd *cobra.Command, flag string) string {
	name := cmd.Name()
	if parent := cmd.Parent(); parent != nil && parent.Name() == "runtime" {
		name = "runtime " + name
	}
	said := everydayFlags[name][flag]
	if said == "" && cmd.Flags().Lookup("host") != nil {
		said = map[string]string{
			"port":  "the address of a server is --host http://127.0.0.1:1234",
			"quiet": "notes are on standard error: 2>/dev/null hides them", "log-level": asksNothing,
		}[flag]
	}
	return said
}
