// Formulas in Markdown: \(…\) within a line, \[…\] and $$…$$ within a paragraph or as one. A price in dollars is none.

import type { MarkedOptions, Token } from "marked";

const longest = 4000; // characters

const inLine = new RegExp(`^\\\\\\(([^\\n]{1,${longest}}?)\\\\\\)`);
const within = `((?:[^\\n]|\\n(?![ \\t]*\\n)){1,${longest}}?)`;
const displayed = [new RegExp(`^\\\\\\[${within}\\\\\\]`), new RegExp(`^\\$\\$${within}\\$\\$`)];
const start = /^ {0,3}(?=\\\[|\$\$)/;

export interface FormulaToken {
	type: "formula";
	raw: string;
	text: string;
	isDisplayed: boolean;
}

function inline(src: string): FormulaToken | undefined {
	const first = inLine.exec(src);
	const found = first ?? displayed[0]?.exec(src) ?? displayed[1]?.exec(src);
	return found ? { type: "formula", raw: found[0], text: (found[1] ?? "").trim(), isDisplayed: !first } : undefined;
}

function block(src: string): FormulaToken | undefined {
	const indent = start.exec(src)?.[0];
	if (indent === undefined) return undefined;
	const token = inline(src.slice(indent.length));
	const end = token && /^[ \t]*(?:\n+|$)/.exec(src.slice(indent.length + token.raw.length));
	return token && end ? { ...token, raw: indent + token.raw + end[0] } : undefined;
}

/** What the lexer needs to know of formulas. */
export const formulas = {
	inline: [inline],
	block: [block],
	startInline: [(src: string) => src.indexOf("$$")],
	renderers: {},
	childTokens: {},
} as unknown as MarkedOptions["extensions"];

/** Reports whether what begins with a token may become a formula with more lines. */
export function mayBecomeFormula(token: Token, rest: string): boolean {
	return token.type === "paragraph" && start.test(token.raw) && !/\n[ \t]*\n/.test(rest);
}
