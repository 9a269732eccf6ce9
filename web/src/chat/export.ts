// A conversation as a file.

import { path } from "./tree";
import type { Tree, Turn } from "./tree";

/** Returns the turns that are shown, as Markdown. */
export function asMarkdown(tree: Tree): string {
	const parts: string[] = [];
	for (const turn of path(tree)) {
		if (turn.systemPrompt) parts.push("## System prompt", turn.systemPrompt);
		parts.push("## Question", turn.question.text || "(an image)");
		if (turn.question.text && turn.question.images.length > 0) parts.push(`(with ${turn.question.images.length === 1 ? "an image" : "images"})`);
		parts.push(`## Answer (${turn.answer.instance || turn.model})`, ...answerParts(turn));
	}
	return parts.join("\n\n") + "\n";
}

function answerParts(turn: Turn): string[] {
	const parts = turn.answer.parts.map((p) => {
		if (p.kind !== "call") return p.kind === "message" ? p.text : p.text.trim().replace(/^/gm, "> ");
		const result = p.output ?? `failed: ${p.reason ?? ""}`;
		return fenced("json", `${p.tool}(${JSON.stringify(p.arguments ?? {})})\n${result}`);
	});
	if (turn.answer.phase === "stopped") parts.push("(The answer was stopped.)");
	if (turn.answer.phase === "failed") parts.push(`(The answer failed: ${turn.answer.failures.at(-1)?.message ?? ""})`);
	return parts;
}

/** Returns a block of code whose fence is longer than any in it. */
export function fenced(lang: string, text: string): string {
	const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((m) => m[0].length));
	const fence = "`".repeat(longest + 1);
	return `${fence}${lang}\n${text}\n${fence}`;
}

/** Returns all branches as JSON. */
export function asJSON(tree: Tree, conversation: string): string {
	const shown = new Set(path(tree).map((t) => t.id));
	const turns = [...tree.turns.values()].map(({ id, parent, question, answer, model, systemPrompt }) => ({
		id: answer.responseId || id,
		previous: tree.turns.get(parent)?.answer.responseId || parent || null,
		shown: shown.has(id),
		model: answer.instance || model,
		system_prompt: systemPrompt,
		question,
		answer: answer.parts.map(({ done: _, ...part }) => part),
		status: answer.phase,
		errors: answer.failures.length > 0 ? answer.failures : undefined,
		stats: answer.stats ?? undefined,
	}));
	return JSON.stringify({ conversation: conversation || null, turns }, null, "\t") + "\n";
}

/** Has the browser save a text as a file. */
export function save(name: string, type: string, text: string): void {
	const url = URL.createObjectURL(new Blob([text], { type }));
	const link = document.createElement("a");
	link.href = url;
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
