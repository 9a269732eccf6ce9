// A conversation as a file.

import { outputOf } from "./answer";
import type { Stats } from "./answer";
import { inputOf, path } from "./tree";
import type { Tree, Turn } from "./tree";
import { texts } from "../texts";

/** Returns the turns that are shown, as Markdown. */
export function asMarkdown(tree: Tree): string {
	const parts: string[] = [];
	for (const turn of path(tree)) {
		if (turn.systemPrompt) parts.push("## " + texts.common.systemPrompt, turn.systemPrompt);
		parts.push("## " + texts.common.question, turn.question.text || (turn.question.recordings?.length ? texts.exported.aRecording : texts.exported.anImage));
		if (turn.question.text && turn.question.images.length > 0) parts.push(turn.question.images.length === 1 ? texts.exported.withImage : texts.exported.withImages);
		parts.push("## " + texts.exported.answer(turn.answer.instance || turn.model), ...answerParts(turn));
	}
	return parts.join("\n\n") + "\n";
}

function answerParts(turn: Turn): string[] {
	const parts = turn.answer.parts.map((p) => {
		if (p.kind !== "call") return p.kind === "message" ? p.text : p.text.trim().replace(/^/gm, "> ");
		const result = p.output ?? texts.exported.failed(p.reason ?? "");
		return fenced("json", `${p.tool}(${JSON.stringify(p.arguments ?? {})})\n${result}`);
	});
	if (turn.answer.phase === "stopped") parts.push(texts.exported.theAnswerWasStopped);
	if (turn.answer.phase === "failed") parts.push(texts.exported.theAnswerFailed(turn.answer.failures.at(-1)?.message ?? ""));
	return parts;
}

/** Returns a block of code whose fence is longer than any in it. */
export function fenced(lang: string, text: string): string {
	const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((m) => m[0].length));
	const fence = "`".repeat(longest + 1);
	return `${fence}${lang}\n${text}\n${fence}`;
}

/** Returns all branches as JSON, which can be imported. */
export function asJSON(tree: Tree, conversation: string): string {
	const shown = new Set(path(tree).map((t) => t.id));
	const idOf = (turn: Turn) => turn.answer.responseId || turn.id;
	const responses = [...tree.turns.values()].map((turn) => {
		const { answer, parent, model, question, systemPrompt } = turn;
		const before = tree.turns.get(parent);
		return {
			response_id: idOf(turn),
			previous_response_id: before ? idOf(before) : null,
			shown: shown.has(turn.id),
			model: answer.instance || model,
			system_prompt: systemPrompt,
			input: inputOf(question),
			output: outputOf(answer.parts),
			status: answer.status || (answer.phase === "done" ? "completed" : answer.phase === "failed" ? "failed" : "incomplete"),
			errors: answer.failures.length > 0 ? answer.failures : undefined,
			usage: answer.stats ? usageOf(answer.stats, answer.cachedTokens) : undefined,
		};
	});
	return JSON.stringify({ conversations: [{ id: conversation || null, responses }] }, null, "\t") + "\n";
}

function usageOf(s: Stats, cached: number | null) {
	return {
		input_tokens: s.input_tokens,
		cached_input_tokens: cached ?? 0,
		output_tokens: s.total_output_tokens,
		reasoning_output_tokens: s.reasoning_output_tokens,
		tokens_per_second: s.tokens_per_second,
		time_to_first_token_seconds: s.time_to_first_token_seconds,
		context_length: s.context_length,
	};
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
