// Cuts Markdown that grows into blocks, so that only the last one has to be parsed again, and bounds what is parsed: an answer may be
// anything, also something that is made to keep a parser busy.

import { Lexer } from "marked";
import type { Token } from "marked";

export type Block = { kind: "tokens"; tokens: Token[] } | { kind: "code"; lang: string; text: string } | { kind: "plain"; text: string };

/** Bounds. What is beyond them is shown as plain text. */
export const bounds = {
	block: 8 << 10, // characters of a block; the parser's time may grow with their square
	line: 4 << 10, // characters of a line
	nesting: 24, // quotes and lists in each other
	tokens: 20_000, // of an answer
	blocks: 3_000, // of an answer
	milliseconds: 1_000, // of parsing for an answer
};

type Open = { kind: "text" | "list" | "code" | "plain"; lines: string[]; size: number; fence: string; lang: string };

const fenceStart = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const listStart = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const tableRule = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** The blocks of an answer. Its text may only grow. */
export class Blocks {
	readonly closed: Block[] = [];
	#read = 0; // of the text: whole lines
	#open: Open = start("text");
	#tokens = 0;
	#milliseconds = 0;
	#tail: { text: string; block: Block } | null = null; // the open block, as it was parsed last

	/** Takes the whole text, and returns the block that isn't complete yet, if there is one. */
	feed(text: string): Block | null {
		const end = text.lastIndexOf("\n") + 1;
		while (this.#read < end) {
			const next = text.indexOf("\n", this.#read);
			this.#line(text.slice(this.#read, next));
			this.#read = next + 1;
		}
		return this.#rest(text.slice(this.#read));
	}

	/** Takes the whole text, which grows no more. */
	end(text: string) {
		this.feed(text);
		if (this.#read < text.length) this.#line(text.slice(this.#read));
		this.#read = text.length;
		this.#close();
	}

	#line(line: string) {
		const open = this.#open;
		if (open.kind === "code") {
			if (isFenceEnd(line, open.fence)) this.#close();
			else if (open.size > 1 << 20) this.#close(start("code", open.fence, open.lang)).lines.push(line);
			else this.#push(line);
			return;
		}
		const fence = fenceStart.exec(line);
		if (fence && open.kind !== "list") {
			this.#close(start("code", fence[1], fence[2]?.trim()));
			return;
		}
		if (isHostile(line) || this.#isSpent()) {
			if (open.kind !== "plain") this.#close(start("plain"));
			this.#push(line);
			if (this.#open.size > 16 << 10) this.#close(this.#isSpent() ? start("plain") : undefined);
			return;
		}
		if (open.kind === "plain") {
			this.#close(start(listStart.test(line) ? "list" : "text"));
		} else if (open.size + line.length > bounds.block) {
			this.#close(continuation(open));
		} else if (this.#isBoundary(line)) {
			this.#close(start(listStart.test(line) ? "list" : "text"));
		} else if (open.lines.length === 0 && listStart.test(line)) {
			open.kind = "list";
		}
		this.#push(line);
	}

	/** Reports whether a block begins with a line: after an empty one, unless a list goes on. */
	#isBoundary(line: string): boolean {
		const lines = this.#open.lines;
		if (lines.length === 0 || line.trim() === "" || lines.at(-1)?.trim() !== "") return false;
		return this.#open.kind === "text" ? !/^(?: {4}|\t)/.test(line) : !/^[ \t]/.test(line) && !listStart.test(line);
	}

	#push(line: string) {
		this.#open.lines.push(line);
		this.#open.size += line.length + 1;
	}

	#close(next = start("text")): Open {
		const open = this.#open;
		this.#open = next;
		this.#tail = null;
		if (open.kind !== "code" && open.lines.every((l) => l.trim() === "")) return next;
		const block = this.#parse(open, open.lines.join("\n"));
		const last = this.closed[this.closed.length - 1];
		if (block.kind === "plain" && last?.kind === "plain" && last.text.length + block.text.length < 16 << 10) {
			this.closed[this.closed.length - 1] = { kind: "plain", text: last.text + "\n" + block.text };
		} else {
			this.closed.push(block);
		}
		return next;
	}

	#rest(line: string): Block | null {
		// Whatever follows in this line, it begins a block. A list may still go on.
		if (this.#open.kind === "text" && this.#isBoundary(line)) this.#close();
		const open = this.#open;
		if (open.kind !== "code" && line === "" && open.lines.every((l) => l.trim() === "")) return null;
		const text = open.lines.length > 0 ? open.lines.join("\n") + (line ? "\n" + line : "") : line;
		if (this.#tail?.text === text) return this.#tail.block;
		const fence = open.kind === "code" ? null : fenceStart.exec(line);
		let block: Block;
		if (fence && open.kind !== "list" && open.lines.every((l) => l.trim() === "")) block = { kind: "code", lang: fence[2]?.trim() ?? "", text: "" };
		else if (isHostile(line) || (text.length > bounds.block && open.kind !== "code")) block = { kind: "plain", text };
		else block = this.#parse(open, text);
		this.#tail = { text, block };
		return block;
	}

	#isSpent(): boolean {
		return this.#tokens > bounds.tokens || this.closed.length > bounds.blocks || this.#milliseconds > bounds.milliseconds;
	}

	#parse(open: Open, text: string): Block {
		if (open.kind === "code") return { kind: "code", lang: open.lang, text };
		if (open.kind === "plain" || this.#isSpent()) return { kind: "plain", text };
		const began = performance.now();
		try {
			const tokens: Token[] = Lexer.lex(text, { gfm: true });
			const number = count(tokens, 0);
			if (this.#open !== open) this.#tokens += number; // it is complete
			return number > bounds.tokens ? { kind: "plain", text } : { kind: "tokens", tokens };
		} catch {
			return { kind: "plain", text }; // nested too deeply
		} finally {
			this.#milliseconds += performance.now() - began;
		}
	}
}

function start(kind: Open["kind"], fence = "", lang = ""): Open {
	return { kind, lines: [], size: 0, fence, lang };
}

/** Returns the block that goes on where one became too long: a table keeps its head. */
function continuation(open: Open): Open {
	const next = start(open.kind);
	const [head = "", rule = ""] = open.lines;
	if (open.lines.length > 2 && head.includes("|") && tableRule.test(rule)) {
		next.lines = [head, rule];
		next.size = head.length + rule.length + 2;
	}
	return next;
}

function isFenceEnd(line: string, fence: string): boolean {
	const trimmed = line.trim();
	return trimmed.length >= fence.length && /^ {0,3}[`~]/.test(line) && trimmed === fence.charAt(0).repeat(trimmed.length);
}

/** Reports whether a line is too long or too deeply nested to be parsed. */
function isHostile(line: string): boolean {
	if (line.length > bounds.line) return true;
	const marks = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*/.exec(line)?.[0] ?? "";
	return marks.replace(/[\s\d]/g, "").length > bounds.nesting || /^\s{120}/.test(line);
}

function count(tokens: Token[], depth: number): number {
	if (depth > 4 * bounds.nesting) throw new RangeError("nested too deeply");
	let number = tokens.length;
	for (const token of tokens) {
		const t = token as { tokens?: Token[]; items?: Token[]; header?: { tokens: Token[] }[]; rows?: { tokens: Token[] }[][] };
		if (t.tokens) number += count(t.tokens, depth + 1);
		if (t.items) number += count(t.items, depth + 1);
		for (const cells of [t.header ?? [], ...(t.rows ?? [])]) for (const cell of cells) number += 1 + count(cell.tokens, depth + 1);
	}
	return number;
}
