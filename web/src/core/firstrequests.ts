/** What the first requests to a server look like. */

export type Family = "openai" | "anthropic" | "native" | "v0" | "ollama";
export type Language = "curl" | "python" | "node" | "go";

export const families: readonly { value: Family; text: string }[] = [
	{ value: "openai", text: "OpenAI" },
	{ value: "anthropic", text: "Anthropic" },
	{ value: "native", text: "Native" },
	{ value: "v0", text: "Native v0" },
	{ value: "ollama", text: "Ollama" },
];

export const languages: readonly { value: Language; text: string }[] = [
	{ value: "curl", text: "curl" },
	{ value: "python", text: "Python" },
	{ value: "node", text: "Node" },
	{ value: "go", text: "Go" },
];

export interface Site {
	/** Such as http://127.0.0.1:1234. */
	origin: string;
	model: string;
	needsToken: boolean;
}

/** The variable of the environment that has the token in all examples. */
export const tokenVariable = "LM_API_TOKEN";

const question = "What is the capital of France?";

/** The base URL for clients of a family. */
export function baseURL(family: Family, origin: string): string {
	return { openai: origin + "/v1", anthropic: origin, native: origin + "/api/v1", v0: origin + "/api/v0", ollama: origin }[family];
}

/** A first request, ready to be run. */
export function firstRequest(family: Family, language: Language, site: Site): string {
	if (language === "curl") return curl(family, site);
	if (language === "go") return go(family, site);
	if (family === "openai" || family === "v0") return { python: openAIPython, node: openAINode }[language](baseURL(family, site.origin), site);
	if (family === "anthropic") return { python: anthropicPython, node: anthropicNode }[language](site);
	if (family === "ollama") return { python: ollamaPython, node: ollamaNode }[language](site);
	return { python: nativePython, node: nativeNode }[language](site);
}

/** How Claude Code is started with this server. */
export const claudeCode = ({ origin, model, needsToken }: Site): string =>
	`ANTHROPIC_BASE_URL=${quoted(origin)} ANTHROPIC_AUTH_TOKEN=${needsToken ? `"$${tokenVariable}"` : "any"} claude --model ${quoted(model)}`;

/** How Codex is started with this server: a provider of its own works with tokens, any port and any list of models. */
export const codex = ({ origin, model, needsToken }: Site): string =>
	[
		"codex",
		"-c model_provider=local",
		"-c model_providers.local.name=local",
		`-c ${quoted(`model_providers.local.base_url=${origin}/v1`)}`,
		"-c model_providers.local.wire_api=responses",
		...(needsToken ? [`-c model_providers.local.env_key=${tokenVariable}`] : []),
		"-c web_search=disabled",
		`-m ${quoted(model)}`,
	].join(" \\\n  ");

/** A text as a word of a shell. */
function quoted(text: string): string {
	return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const json = JSON.stringify;

function curl(family: Family, { origin, model, needsToken }: Site): string {
	const messages = [{ role: "user", content: question }];
	const [path, body] = {
		openai: ["/v1/chat/completions", { model, messages }] as const,
		v0: ["/api/v0/chat/completions", { model, messages }] as const,
		anthropic: ["/v1/messages", { model, max_tokens: 200, messages }] as const,
		native: ["/api/v1/chat", { model, input: question }] as const,
		ollama: ["/api/chat", { model, messages, stream: false }] as const,
	}[family];
	const lines = [`curl ${quoted(origin + path)}`, `-H "Content-Type: application/json"`];
	if (needsToken) lines.push(family === "anthropic" ? `-H "X-Api-Key: $${tokenVariable}"` : `-H "Authorization: Bearer $${tokenVariable}"`);
	return [...lines, `-d ${quoted(json(body))}`].join(" \\\n  ");
}

const openAIPython = (base: string, { model, needsToken }: Site): string => `# pip install openai
${needsToken ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url=${json(base)}, api_key=${needsToken ? `os.environ["${tokenVariable}"]` : `"none"`})
completion = client.chat.completions.create(
    model=${json(model)},
    messages=[{"role": "user", "content": ${json(question)}}],
)
print(completion.choices[0].message.content)
`;

const openAINode = (base: string, { model, needsToken }: Site): string => `// npm install openai
import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${json(base)}, apiKey: ${needsToken ? `process.env.${tokenVariable}` : `"none"`} });
const completion = await client.chat.completions.create({
  model: ${json(model)},
  messages: [{ role: "user", content: ${json(question)} }],
});
console.log(completion.choices[0].message.content);
`;

const anthropicPython = ({ origin, model, needsToken }: Site): string => `# pip install anthropic
${needsToken ? "import os\n\n" : ""}from anthropic import Anthropic

client = Anthropic(base_url=${json(origin)}, api_key=${needsToken ? `os.environ["${tokenVariable}"]` : `"none"`})
message = client.messages.create(
    model=${json(model)},
    max_tokens=200,
    messages=[{"role": "user", "content": ${json(question)}}],
)
print(message.content[0].text)
`;

const anthropicNode = ({ origin, model, needsToken }: Site): string => `// npm install @anthropic-ai/sdk
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: ${json(origin)}, apiKey: ${needsToken ? `process.env.${tokenVariable}` : `"none"`} });
const message = await client.messages.create({
  model: ${json(model)},
  max_tokens: 200,
  messages: [{ role: "user", content: ${json(question)} }],
});
console.log(message.content[0].text);
`;

const nativePython = ({ origin, model, needsToken }: Site): string => `import json
${needsToken ? "import os\n" : ""}import urllib.request

request = urllib.request.Request(
    ${json(origin + "/api/v1/chat")},
    data=json.dumps({"model": ${json(model)}, "input": ${json(question)}}).encode(),
    headers={"Content-Type": "application/json"${needsToken ? `, "Authorization": "Bearer " + os.environ["${tokenVariable}"]` : ""}},
)
with urllib.request.urlopen(request) as response:
    answer = json.load(response)
print(answer["output"][-1]["content"])
`;

const nativeNode = ({ origin, model, needsToken }: Site): string => `const response = await fetch(${json(origin + "/api/v1/chat")}, {
  method: "POST",
  headers: { "Content-Type": "application/json"${needsToken ? `, Authorization: "Bearer " + process.env.${tokenVariable}` : ""} },
  body: JSON.stringify({ model: ${json(model)}, input: ${json(question)} }),
});
const answer = await response.json();
console.log(answer.output.at(-1).content);
`;

const ollamaPython = ({ origin, model, needsToken }: Site): string => `# pip install ollama
${needsToken ? "import os\n\n" : ""}from ollama import Client

client = Client(host=${json(origin)}${needsToken ? `, headers={"Authorization": "Bearer " + os.environ["${tokenVariable}"]}` : ""})
response = client.chat(
    model=${json(model)},
    messages=[{"role": "user", "content": ${json(question)}}],
)
print(response.message.content)
`;

const ollamaNode = ({ origin, model, needsToken }: Site): string => `// npm install ollama
import { Ollama } from "ollama";

const client = new Ollama({ host: ${json(origin)}${needsToken ? `, headers: { Authorization: "Bearer " + process.env.${tokenVariable} }` : ""} });
const response = await client.chat({
  model: ${json(model)},
  messages: [{ role: "user", content: ${json(question)} }],
});
console.log(response.message.content);
`;

/** In Go: with the standard library alone, so that it runs as it stands. */
function go(family: Family, { origin, model, needsToken }: Site): string {
	const messages = `\t\t"messages": []map[string]string{{"role": "user", "content": ${json(question)}}},`;
	const choices = ["[]struct{ Message struct{ Content string } }", "Choices[0].Message.Content"] as const;
	const [path, lines, type, printed] = {
		openai: ["/v1/chat/completions", [messages], ...choices] as const,
		v0: ["/api/v0/chat/completions", [messages], ...choices] as const,
		anthropic: ["/v1/messages", [`\t\t"max_tokens": 200,`, messages], "[]struct{ Text string }", "Content[0].Text"] as const,
		native: ["/api/v1/chat", [`\t\t"input": ${json(question)},`], "[]struct{ Content string }", "Output[len(answer.Output)-1].Content"] as const,
		ollama: ["/api/chat", [messages, `\t\t"stream": false,`], "struct{ Content string }", "Message.Content"] as const,
	}[family];
	return `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
${needsToken ? `	"os"\n` : ""})

func main() {
	body, _ := json.Marshal(map[string]any{
		"model": ${json(model)},
${lines.join("\n")}
	})
	request, err := http.NewRequest("POST", ${json(origin + path)}, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
${needsToken ? `	request.Header.Set("Authorization", "Bearer "+os.Getenv("${tokenVariable}"))\n` : ""}	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	var answer struct{ ${printed.split(/[.[]/)[0]} ${type} }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		panic(err)
	}
	fmt.Println(answer.${printed})
}
`;
}
