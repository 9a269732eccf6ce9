// Titles that models make of conversations. A model is asked for one only while it has nothing else to do, and has a slot besides that of the
// conversation, whose prompt stays where it is.

import { call, get, post, segment } from "../core/http";
import { Store } from "../core/store";
import type { Conversation, Model, Overview } from "../core/types";
import type { Turn } from "./tree";

/** Changes when a conversation got a title. */
export const named = new Store(0);

const restTime = 1_000; // milliseconds after the answer, in which the next question may come
const mostRests = 20;
const mostRead = 600; // characters of the question, and of the answer
const mostTokens = 24;

interface Result {
	output: { type: string; content?: string }[];
}

/** Has the model that has answered the first question of a conversation make a title, if it has the time. isWanted says whether nothing else was asked meanwhile. */
export async function giveTitle(turn: Turn, isWanted: () => boolean): Promise<void> {
	const path = "/api/v1/conversations/" + segment(turn.answer.responseId);
	const about = () => get<Conversation>(path, { query: { responses: false } });
	const { instance } = turn.answer;
	for (let i = 0, is = "busy"; is !== "free"; i++) {
		await new Promise((resolve) => setTimeout(resolve, restTime));
		if (!isWanted() || i === mostRests) return;
		is = await stateOf(instance);
		if (is === "unfit") return;
	}
	const model = await get<Model>("/api/v1/models/" + segment(turn.model));
	const reasoning = model.capabilities?.reasoning;
	if (reasoning && !reasoning.allowed_options.includes("off")) return; // its thoughts would take too long
	const before = await about();
	const { output } = await post<Result>("/api/v1/chat", {
		model: instance,
		input: inputOf(turn),
		store: false,
		temperature: 0.2,
		max_output_tokens: mostTokens,
		...(reasoning && { reasoning: "off" }),
	});
	const title = titleIn(output.find((o) => o.type === "message")?.content ?? "");
	if (!title || (await about()).title !== before.title) return; // somebody was quicker
	await call("PATCH", path, { body: { title } });
	named.set(named.value + 1);
}

/** Returns whether an instance may be asked now, later, or not at all. */
async function stateOf(id: string): Promise<"free" | "busy" | "unfit"> {
	const { instances } = await get<Overview>("/api/v1/ps");
	const found = instances.find((i) => i.id === id);
	if (!found || found.status !== "ready" || found.remote || found.slots < 2) return "unfit";
	return found.in_use === 0 ? "free" : "busy";
}

function inputOf({ question, answer }: Turn): string {
	const said = answer.parts.map((p) => (p.kind === "message" ? p.text : "")).join("\n");
	return `Write a title of two to six words for this conversation, in its language. Write nothing but the title.\n\n<question>\n${question.text.slice(0, mostRead)}\n</question>\n\n<answer>\n${said.slice(0, mostRead)}\n</answer>`;
}

/** Returns the title in what a model said. */
export function titleIn(said: string): string {
	const line = said.split("\n").find((l) => /\p{L}|\p{N}/u.test(l)) ?? "";
	return line
		.replace(/^[\s#>*-]*(?:\*\*)?(?:title|titel|titre|título)\s*:\s*/i, "")
		.replace(/^[\s#*"'“”„«»`_-]+|[\s*"'“”„«»`_.]+$/g, "")
		.slice(0, 80);
}
