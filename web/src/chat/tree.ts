// A conversation with its branches. Each turn is a question with its answer; turns with the same parent are branches.

import { isRunning, newAnswer, partsOf } from "./answer";
import type { Answer } from "./answer";
import type { components } from "../schema";
import type { TextFile } from "./files";
import type { Recording } from "./recordings";

export interface Question {
	text: string;
	images: string[]; // data URLs
	recordings?: Recording[];
	files?: TextFile[]; // of a draft: when it is asked, they are in the text
}

export interface Turn {
	id: string; // within the page
	parent: string; // empty: the conversation begins with it
	question: Question;
	answer: Answer;
	model: string;
	systemPrompt?: string;
}

export interface Tree {
	turns: ReadonlyMap<string, Turn>; // in the order in which they were made
	chosen: ReadonlyMap<string, string>; // the child of each parent that is shown
}

export const emptyTree: Tree = { turns: new Map(), chosen: new Map() };

const allBranches = new WeakMap<Tree["turns"], ReadonlyMap<string, Turn[]>>();

/** Returns the turns that continue each parent, the oldest first. */
export function branches({ turns }: Tree): ReadonlyMap<string, Turn[]> {
	const known = allBranches.get(turns);
	if (known) return known;
	const all = new Map<string, Turn[]>();
	for (const turn of turns.values()) {
		const siblings = all.get(turn.parent);
		if (siblings) siblings.push(turn);
		else all.set(turn.parent, [turn]);
	}
	allBranches.set(turns, all);
	return all;
}

/** Returns the turns that are shown, from the first on. */
export function path(tree: Tree): Turn[] {
	const shown: Turn[] = [];
	for (let at = ""; shown.length <= tree.turns.size;) {
		const next = tree.turns.get(tree.chosen.get(at) ?? "");
		if (!next) break;
		shown.push(next);
		at = next.id;
	}
	return shown;
}

/** Adds a turn, and shows it. */
export function withTurn(tree: Tree, turn: Turn): Tree {
	return { turns: new Map(tree.turns).set(turn.id, turn), chosen: new Map(tree.chosen).set(turn.parent, turn.id) };
}

/** Changes the answer of a turn. */
export function withAnswer(tree: Tree, id: string, change: (a: Answer) => Answer): Tree {
	const turn = tree.turns.get(id);
	if (!turn) return tree;
	const answer = change(turn.answer);
	return answer === turn.answer ? tree : { ...tree, turns: new Map(tree.turns).set(id, { ...turn, answer }) };
}

/** Shows a branch. */
export function choose(tree: Tree, turn: Turn): Tree {
	return { ...tree, chosen: new Map(tree.chosen).set(turn.parent, turn.id) };
}

/** Deletes a turn that nothing continues, and shows the branch before it. */
export function without(tree: Tree, id: string): Tree {
	const turn = tree.turns.get(id);
	if (!turn || branches(tree).has(id)) return tree;
	const turns = new Map(tree.turns);
	turns.delete(id);
	const chosen = new Map(tree.chosen);
	const left = branches({ turns, chosen }).get(turn.parent)?.at(-1);
	if (left) chosen.set(turn.parent, left.id);
	else chosen.delete(turn.parent);
	return { turns, chosen };
}

/**
 * Returns the response that a question after a turn continues: the turn's, or that of the nearest turn before it that is stored. Empty: it
 * begins a conversation.
 */
export function continues(tree: Tree, after: string): string {
	for (let turn = tree.turns.get(after); turn; turn = tree.turns.get(turn.parent)) {
		const { answer } = turn;
		if (answer.responseId && !isRunning(answer) && (answer.phase !== "failed" || answer.parts.length > 0)) return answer.responseId;
	}
	return "";
}

/** A response as GET /api/v1/conversations/{id} returns it. */
export interface StoredResponse {
	response_id: string;
	previous_response_id?: string;
	model: string;
	status: string;
	system_prompt?: string;
	input: unknown[];
	output: unknown[];
	usage?: components["schemas"]["StoredUsage"];
}

/** Returns a stored conversation. The newest branch is shown. */
export function treeOf(responses: StoredResponse[]): Tree {
	const turns = new Map<string, Turn>();
	const chosen = new Map<string, string>();
	const known = new Set(responses.map((r) => r.response_id));
	for (const r of responses) {
		const parent = r.previous_response_id && known.has(r.previous_response_id) ? r.previous_response_id : "";
		const turn: Turn = { id: r.response_id, parent, question: questionOf(r.input), answer: answerOf(r), model: r.model };
		if (r.system_prompt !== undefined) turn.systemPrompt = r.system_prompt;
		turns.set(turn.id, turn);
	}
	// The way to the newest response is shown, and below any other branch its newest one.
	for (const turn of turns.values()) chosen.set(turn.parent, turn.id);
	const newest = responses.at(-1)?.response_id ?? "";
	const seen = new Set<string>();
	for (let turn = turns.get(newest); turn && !seen.has(turn.id); turn = turns.get(turn.parent)) {
		seen.add(turn.id);
		chosen.set(turn.parent, turn.id);
	}
	return { turns, chosen };
}

/** Returns the answer of a stored response. One that is in progress has none yet. */
export function answerOf(r: StoredResponse): Answer {
	return {
		...newAnswer(),
		phase: phaseOf(r.status),
		status: r.status,
		instance: r.model,
		responseId: r.response_id,
		parts: partsOf(r.output),
		cachedTokens: r.usage?.cached_input_tokens ?? null,
		stats: r.usage
			? {
					input_tokens: r.usage.input_tokens ?? 0,
					total_output_tokens: r.usage.output_tokens ?? 0,
					reasoning_output_tokens: r.usage.reasoning_output_tokens ?? 0,
					tokens_per_second: r.usage.tokens_per_second ?? 0,
					time_to_first_token_seconds: r.usage.time_to_first_token_seconds ?? 0,
					context_length: r.usage.context_length,
				}
			: null,
	};
}

function phaseOf(status: string): Answer["phase"] {
	switch (status) {
		case "incomplete":
		case "cancelled":
			return "stopped";
		case "failed":
			return "failed";
		case "in_progress":
		case "queued":
			return "waiting";
		default:
			return "done";
	}
}

/** Returns a question as the input of a request. */
export function inputOf({ text, images, recordings = [] }: Question): unknown[] {
	const others = [...images.map((url) => ({ type: "image", data_url: url })), ...recordings.map(({ url }) => ({ type: "audio", data_url: url }))];
	return text || others.length === 0 ? [{ type: "message", content: text }, ...others] : others;
}

function questionOf(input: unknown[]): Question {
	const question: Question = { text: "", images: [] };
	for (const item of input) {
		if (typeof item !== "object" || item === null) continue;
		const i = item as { type?: string; content?: unknown; data_url?: unknown; output?: unknown };
		const said = typeof i.content === "string" ? i.content : typeof i.output === "string" ? i.output : "";
		if (said) question.text += (question.text ? "\n\n" : "") + said;
		if (typeof i.data_url !== "string") continue;
		if (i.type === "audio") question.recordings = [...(question.recordings ?? []), { name: "", url: i.data_url }];
		else question.images.push(i.data_url);
	}
	return question;
}
