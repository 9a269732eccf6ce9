// Cuts Markdown that grows into blocks, so that only the last one has to be parsed again, and bounds what is parsed: an answer may be
// anything, also something that is made to keep a parser busy. A block is a token of marked's at the top level: the lexer alone decides
// where one ends.

import { Lexer } from "marked";
import type { Links, Token, Tokens } from "marked";
import { formulas, mayBecomeFormula } from "./formula";

export type Block =
	| { kind: "tokens"; tokens: Token[]; raw: string }
	| { kind: "code"; lang: string; text: string }
	| { kind: "plain"; text: string };

/** Bounds. What is beyond them is shown as plain text. */
export const bounds = {
	block: 8 << 10, // characters of a block; the parser's time may grow with their square
	code: 1 << 20, // characters of a block of code
	line: 4 << 10, // characters of a line
	nesting: 24, // quotes and lists in each other
	tokens: 20_000, // of an answer
	blocks: 3_000, // of an answer
	definitions: 500, // of links in an answer
	milliseconds: 500, // of parsing for an answer
};

/** The blocks of an answer. Its text may only grow. */
export class Blocks {
	readonly closed: Block[] = [];
	#read = 0; // of the text: whole lines
	#open = ""; // the lines after the closed blocks
	#due = bounds.block; // characters of open lines at which they are cut
	#fence: Fence | null = null; // the open lines are code
	#links: Links = Object.create(null) as Links; // that closed blocks define
	#tokens = 0;
	#milliseconds = 0;
	#tail: { text: string; blocks: Block[] } | null = null; // the open lines, as they were parsed last

	/** Takes the whole text, and returns the blocks that aren't complete yet. */
	feed(text: string): Block[] {
		const end = text.lastIndexOf("\n") + 1;
		if (this.#read < end) {
			while (this.#read < end) {
				const next = text.indexOf("\n", this.#read);
				this.#line(text.slice(this.#read, next).replace(/\r$/, ""));
				this.#read = next + 1;
			}
			if (!this.#fence) this.#cut(false);
		}
		return this.#rest(text.slice(this.#read));
	}

	/** Takes the whole text, which grows no more. */
	end(text: string) {
		this.feed(text);
		const rest = text.slice(this.#read);
		this.#read = text.length;
		if (rest !== "") this.#line(rest, "");
		this.#cut(true);
		if (this.#fence) this.#closeFence();
		this.#link();
	}

	#line(line: string, end = "\n") {
		if (!this.#fence && (isHostile(line) || this.#isSpent())) this.#cut(true);
		if (this.#fence) {
			this.#fence.raw += line + end;
			if (this.#fence.end.test(line)) this.#closeFence();
			else if (this.#fence.raw.length > bounds.code) this.#fence = fenceOf(this.#closeFence());
		} else if (isHostile(line) || this.#isSpent()) {
			this.#closePlain(line);
		} else {
			this.#open += line + end;
			if (this.#open.length >= this.#due) this.#cut(false);
		}
	}

	/** Closes the blocks that no later line changes, or all of them. A block of code that is open stays open. */
	#cut(all: boolean) {
		if (this.#open === "") return;
		const tokens = this.#lex(this.#open);
		if (!tokens) {
			this.#closePlain(this.#open.replace(/\n$/, ""));
			this.#open = "";
		} else {
			const last = tokens.at(-1);
			let stable = stableIn(tokens);
			const isCode = last?.type === "code" && (all || stable === tokens.length - 1);
			this.#fence = isCode ? fenceOf(last.raw) : null;
			if (all) stable = this.#fence ? tokens.length - 1 : tokens.length;
			for (const token of tokens.slice(0, stable)) this.#close(token);
			// A list may leave out the spaces at its end.
			this.#open = this.#fence || all ? "" : this.#open.slice(rawOf(tokens.slice(0, stable)).length);
			if (this.#open.length > bounds.block) this.#open = this.#shorten(tokens.slice(stable));
		}
		this.#due = this.#open.length + bounds.block / 2;
		this.#tail = null;
	}

	/** Closes what became too long, and returns the lines that go on from it: a list's last item, or a table's head. */
	#shorten(tokens: Token[]): string {
		const at = tokens.findLastIndex((t) => t.type !== "space");
		const last = tokens[at] as Tokens.Generic | undefined;
		for (const token of tokens.slice(0, at)) this.#close(token);
		if (!last) return "";
		if (last.type === "list" && last.items.length > 1) {
			const { items } = last as Tokens.List;
			const end = rawOf([items.at(-1) as Token, ...tokens.slice(at + 1)]);
			if (end.length < bounds.block) {
				this.#close({ ...last, items: items.slice(0, -1), raw: last.raw.slice(0, -(items.at(-1)?.raw.length ?? 0)) });
				return end;
			}
		}
		this.#close(last);
		return last.type === "table" ? last.raw.split("\n", 2).join("\n") + "\n" : "";
	}

	#close(token: Token) {
		if (token.type === "space") return;
		this.#define([token], 0);
		if (token.type === "def") return;
		if (this.#isSpent()) return this.#closePlain(token.raw.trimEnd());
		this.#tokens += count([token], 0);
		this.closed.push(blockOf(token));
	}

	#closeFence(): string {
		const raw = this.#fence?.raw ?? "";
		this.#fence = null;
		this.#tail = null;
		this.closed.push(codeIn(raw));
		return raw.slice(0, raw.indexOf("\n") + 1);
	}

	#closePlain(text: string) {
		const last = this.closed.at(-1);
		this.#tail = null;
		if (last?.kind === "plain" && last.text.length + text.length < 16 << 10) {
			this.closed[this.closed.length - 1] = { kind: "plain", text: last.text + "\n" + text };
		} else if (text.trim() !== "") {
			this.closed.push({ kind: "plain", text });
		}
	}

	/** Notes the links that tokens define: the first definition counts. */
	#define(tokens: Token[], depth: number) {
		for (const token of tokens) {
			const t = token as Tokens.Generic;
			if (t.type === "def" && !(t.tag in this.#links) && Object.keys(this.#links).length < bounds.definitions) {
				this.#links[t.tag as string] = { href: t.href as string, title: t.title as string };
			}
			if (depth < 4 * bounds.nesting) this.#define((t.items as Token[] | undefined) ?? (t.type === "blockquote" || t.type === "list_item" ? (t.tokens ?? []) : []), depth + 1);
		}
	}

	/** Parses again what may refer to a link that is defined after it. */
	#link() {
		if (Object.keys(this.#links).length === 0) return;
		for (const [i, block] of this.closed.entries()) {
			if (block.kind !== "tokens" || !block.raw.includes("[")) continue;
			const tokens = this.#lex(block.raw);
			if (tokens) this.closed[i] = { ...block, tokens };
		}
	}

	#rest(line: string): Block[] {
		if (!this.#fence && isHostile(line)) this.#cut(true);
		const text = (this.#fence?.raw ?? this.#open) + line.replace(/\r$/, "");
		if (text.trim() === "") return [];
		if (this.#tail?.text === text) return this.#tail.blocks;
		let blocks: Block[];
		if (this.#fence) blocks = [codeIn(text)];
		else if (isHostile(line)) blocks = [{ kind: "plain", text }];
		else blocks = this.#lex(text)?.filter((t) => t.type !== "space" && t.type !== "def").map(blockOf) ?? [{ kind: "plain", text }];
		this.#tail = { text, blocks };
		return blocks;
	}

	#isSpent(): boolean {
		return this.#tokens > bounds.tokens || this.closed.length > bounds.blocks || this.#milliseconds > bounds.milliseconds;
	}

	/** Returns the tokens of a text, or null if it is too much. */
	#lex(text: string): Token[] | null {
		if (this.#isSpent()) return null;
		const began = performance.now();
		try {
			const lexer = new Lexer({ gfm: true, extensions: formulas });
			Object.assign(lexer.tokens.links, this.#links);
			const tokens: Token[] = lexer.lex(text);
			return count(tokens, 0) > bounds.tokens ? null : tokens;
		} catch {
			return null; // nested too deeply
		} finally {
			this.#milliseconds += performance.now() - began;
		}
	}
}

/** A block of code whose end hasn't come. */
interface Fence {
	raw: string;
	end: RegExp; // the line that ends it
}

/** Returns the fence that begins a text, unless that has its end. */
function fenceOf(raw: string): Fence | null {
	const mark = /^ {0,3}(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})/.exec(raw)?.[1];
	if (!mark) return null;
	const end = new RegExp(`^ {0,3}${mark}${mark.charAt(0)}* *$`);
	const lines = raw.split("\n");
	return lines.length > 2 && lines.slice(1).some((l) => end.test(l)) ? null : { raw, end };
}

function codeIn(raw: string): Block {
	const [token] = new Lexer({ gfm: true }).blockTokens(raw) as [Tokens.Code];
	return { kind: "code", lang: token.lang ?? "", text: token.text };
}

function blockOf(token: Token): Block {
	return token.type === "code" ? { kind: "code", lang: (token as Tokens.Code).lang ?? "", text: (token as Tokens.Code).text } : { kind: "tokens", tokens: [token], raw: token.raw };
}

/**
 * Returns how many of the tokens of whole lines stay as they are whatever follows: those before the last one, but for a paragraph on which
 * it depends what the next line is, and for what may become a formula or the title of a link's definition, which can take many lines.
 */
function stableIn(tokens: Token[]): number {
	let stable = tokens.findLastIndex((t) => t.type !== "space");
	const before = tokens[stable - 1];
	if (before?.type === "paragraph" && /^(?:html|table|list)$/.test(tokens[stable]?.type ?? "")) stable--;
	const definition = tokens.findIndex((t) => t.type !== "def" && /^ {0,3}\[[^\n]*\]:[^]*["'(]/.test(t.raw));
	const formula = tokens.findIndex((t, i) => mayBecomeFormula(t, rawOf(tokens.slice(i))));
	for (const limit of [definition, formula]) if (limit >= 0) stable = Math.min(stable, limit);
	return Math.max(0, stable);
}

const rawOf = (tokens: Token[]): string => tokens.map((t) => t.raw).join("");

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
