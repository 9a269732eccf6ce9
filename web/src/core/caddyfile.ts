import { options } from "./options";

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
