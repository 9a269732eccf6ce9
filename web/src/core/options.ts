/** What can be set in a Caddyfile: what an option is for, and an example of its value. */
export interface Option {
	about: string;
	example: string;
}

/** The options of the block lm, by the names in GET /api/v1/settings. A second word is an option of a block within it. */
export const options: Record<string, Option> = {
	abandoned_loads: { about: "What happens to a load that no request waits for any more", example: "stop" },
	allow: { about: "The gates that are open", example: "plugin_mcp" },
	body_memory: { about: "Memory for the bodies of all requests together", example: "1GiB" },
	home: { about: "The folder of all state", example: "/srv/lmcaddy" },
	hosts: { about: "Additional names and addresses of this machine", example: "server.lan" },
	hub: { about: "Servers to download models from", example: "https://huggingface.co" },
	idle_ttl: { about: "How long a model that a request loaded may be idle; 0: forever", example: "2h" },
	inspect: { about: "How many requests are kept whole for administrators", example: "100" },
	jit: { about: "Requests load models", example: "off" },
	list_models: { about: "What GET /v1/models lists", example: "all" },
	max_downloads: { about: "How many models are downloaded at a time; others wait", example: "1" },
	max_loaded: { about: "The most instances; 0: limited by memory only", example: "3" },
	mcp_idle: { about: "How long an MCP server may be unused before it is ended", example: "1h" },
	mcp_max_rounds: { about: "The most answers of a model in a chat with tools", example: "10" },
	mcp_private_hosts: { about: "Hosts without a public address that a request's MCP server may have", example: "127.0.0.1:3001" },
	mcp_timeout: { about: "How long a call of a tool may take", example: "90s" },
	memory_budget: { about: "Memory for all models together: a share or a size", example: "20GiB" },
	models_dir: { about: "Additional folders with models, which are only read", example: "/srv/models" },
	preset: { about: "Defaults for requests that name the preset", example: "short {\n\t\t\tmax_tokens 200\n\t\t}" },
	prompt_cache: { about: "Whether owners share the engine's prompt cache", example: "private" },
	queue: { about: "The most waiting requests for each model; 0: unlimited", example: "64" },
	reasoning_field: { about: "The field for thinking in OpenAI-style answers", example: "reasoning_content" },
	slow_client_timeout: { about: "How long a client may stop reading its answer", example: "30s" },
	stall_timeout: { about: "How long an engine may make no progress", example: "90s" },
	store: { about: "Where conversations, tokens and usage are stored", example: "postgres postgres://lmcaddy@db.example/lmcaddy" },
	"store max_age": { about: "When old conversations are deleted", example: "90d" },
	"store max_turns": { about: "How many turns of conversations are kept", example: "100000" },
	"store token_grace": { about: "How long a known token counts while the store can't be reached", example: "5m" },
	unknown_model: { about: "What happens to a request that names an unknown model or none", example: "single" },
	unsupported_content: { about: "What happens to images and files that a model can't take", example: "omit" },
	warm: { about: "Whether states of conversations are saved to files", example: "off" },
	"warm daily": { about: "The most that is written in a day", example: "200GiB" },
	"warm max_age": { about: "How long an unused state is kept", example: "3d" },
	"warm min_tokens": { about: "How many tokens a conversation must have to be saved", example: "1024" },
	"warm save_after": { about: "How long a model must be unused before its conversations are saved", example: "30s" },
	"warm size": { about: "The most that all states may take", example: "20GiB" },
};

/** The lines of a Caddyfile that set an option, within its global options. */
export function lines(name: string): string {
	const [word = "", inner] = name.split(" ");
	const value = options[name]?.example ?? "";
	const body = inner ? `${word === "store" ? "store sqlite" : word} {\n\t\t\t${inner} ${value}\n\t\t}` : `${word} ${value}`;
	return `{\n\tlm {\n\t\t${body}\n\t}\n}`;
}

export interface Gate {
	name: "plugin_mcp" | "ephemeral_mcp" | "remote_mcp" | "raw_grammar";
	title: string;
	about: string;
}

export const gates: readonly Gate[] = [
	{ name: "plugin_mcp", title: "MCP servers of mcp.json", about: "Chats may use the tools of these servers, with a token of the scope mcp.plugin." },
	{ name: "ephemeral_mcp", title: "MCP servers of requests", about: "Chats may use servers that the request names." },
	{ name: "remote_mcp", title: "MCP in Responses", about: "POST /v1/responses may use MCP servers." },
	{ name: "raw_grammar", title: "Grammars", about: "Requests may contain a grammar, with which a client can keep an engine busy." },
];

export const gateLines = (name: Gate["name"]): string => `{\n\tlm {\n\t\tallow ${name}\n\t}\n}`;
