import { options } from "./options";
import { texts } from "../texts";

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
	{ name: "plugin_mcp", title: texts.gates.mcpServersMcpJson, about: texts.gates.chatsMayUseTools },
	{ name: "ephemeral_mcp", title: texts.gates.mcpServersOfRequests, about: texts.gates.chatsMayUseServers },
	{ name: "remote_mcp", title: texts.gates.mcpInResponses, about: texts.gates.responsesMayUseServers },
	{ name: "raw_grammar", title: texts.gates.grammars, about: texts.gates.requestsMayContainGrammar },
];

export const gateLines = (name: Gate["name"]): string => `{\n\tlm {\n\t\tallow ${name}\n\t}\n}`;
