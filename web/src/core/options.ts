// make reference makes this file from the comments of the options.

/** What can be set in a Caddyfile: what an option is for, and an example of its value. */
export interface Option {
	about: string;
	example: string;
}

/** The options of the block lm, by the names in GET /api/v1/settings. A second word is an option of a block within it. */
export const options: Record<string, Option> = {
	"home": { about: "The folder that holds all state", example: "/srv/lmcaddy" },
	"models_dir": { about: "Additional models folders", example: "/srv/models" },
	"hosts": { about: "Additional names and addresses of this machine", example: "server.lan" },
	"jit": { about: "Loads a model when a request first names it", example: "off" },
	"idle_ttl": { about: "How long a model that was loaded on first use may be idle before it is unloaded; 0: it stays loaded", example: "2h" },
	"max_loaded": { about: "How many instances may be loaded at a time", example: "3" },
	"max_downloads": { about: "How many models are downloaded at a time; others wait", example: "1" },
	"memory_budget": { about: "How much of the machine's memory all instances may take together", example: "20GiB" },
	"gpu_memory": { about: "How much of each GPU's own memory all instances may take together", example: "20GiB" },
	"queue": { about: "How many requests may wait for each model; more are refused", example: "64" },
	"body_memory": { about: "How much memory the bodies of all requests may take together", example: "1GiB" },
	"inspect": { about: "How many requests to models are kept whole, with their answers, for administrators to inspect", example: "100" },
	"stall_timeout": { about: "The longest time that an engine may make no progress, while it loads or answers, before it counts as hung", example: "90s" },
	"slow_client_timeout": { about: "How long a client may read nothing of its answer before its request is cancelled", example: "30s" },
	"prompt_cache": { about: "Whose prompts an engine's cache serves", example: "private" },
	"store": { about: "Where conversations are stored, and for how long", example: "postgres postgres://lmcaddy@db.example/lmcaddy" },
	"store max_age": { about: "How long a conversation is kept after its newest turn", example: "90d" },
	"store max_turns": { about: "How many turns are kept", example: "100000" },
	"store token_grace": { about: "How long a verified token stays valid while the store is unreachable; 0: not at all", example: "10m" },
	"warm": { about: "Which states of conversations are kept in files, so that they needn't be processed again", example: "off" },
	"warm size": { about: "How much all files may take together", example: "20GiB" },
	"warm max_age": { about: "How long a state is kept that isn't used; 0: as long as there is room", example: "3d" },
	"warm save_after": { about: "How long an instance must have been unused before its states are saved", example: "30s" },
	"warm min_tokens": { about: "How many tokens a conversation must have for its state to be saved", example: "1024" },
	"allow": { about: "Which of the features that are off by default are allowed", example: "ephemeral_mcp" },
	"mcp_private_hosts": { about: "The hosts without a public address that a request's MCP server may have", example: "127.0.0.1:3001" },
	"mcp_timeout": { about: "How long a call of an MCP tool may take", example: "90s" },
	"mcp_idle": { about: "How long an MCP server may be unused before its connection is closed and, if lmcaddy started it, its process ended", example: "1h" },
	"mcp_max_rounds": { about: "How many answers of the model a chat with MCP tools may take", example: "10" },
	"list_models": { about: "What GET /v1/models lists", example: "all" },
	"unknown_model": { about: "What happens to a request for an unknown model, or for none", example: "single" },
	"unsupported_content": { about: "What happens to images for a model that can't see them, and to documents, audio and videos", example: "omit" },
	"reasoning_field": { about: "The field in which OpenAI-style answers carry the model's thinking", example: "reasoning_content" },
	"hub": { about: "Where models are downloaded from; the first serves identifiers without a URL", example: "https://huggingface.co" },
	"preset": { about: "Request defaults, by a name that requests choose them by in the field preset", example: "short {\n\t\t\tmax_tokens 200\n\t\t}" },
};
