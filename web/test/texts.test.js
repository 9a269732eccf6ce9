// What the page says stands in src/texts, so that it can be translated: nowhere else may a component have a text of its own.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

const ts = createRequire(join(process.cwd(), "package.json"))("typescript");

/** Files whose texts nobody reads, or that are made from elsewhere: code for a terminal, the prompt of a title, the types and options of the server. */
const others = /^(?:schema|core\/(?:firstrequests|options)|chat\/titles|texts\/.*)\.ts$/;

/** Attributes and properties that are read, or heard. */
const read = /^(?:label|title|text|hint|about|alt|placeholder|lead|unit|action|refusal|aria-label|disabledFor|refuses|name)$/;

/** Calls whose texts are for the program. */
const quiet = /(?:^|\.)(?:querySelector(?:All)?|closest|matches|matchMedia|useMedia|setAttribute|getPropertyValue|href|useResource|get|post|call|send|DateTimeFormat|includes|startsWith|split|has|at)$/;

/** Names of keys, headers, methods and the like, which look like texts. */
const names = new Set(["Enter", "Escape", "Authorization", "Bearer ", "Mac", "Etc/UTC"]);

const hasWord = (s) => /\p{L}{2}/u.test(s);
const isSentence = (s) => /^\p{Lu}\p{Ll}+(?:$|[ ,.:…?!])|\p{L}{2,}[,;:.]? \p{Ll}{2,}|^[,.] | \p{Ll}+[.?]$/u.test(s) && !/^(?:\d+px|\[?[.#a-z]+[ :[]|room before|lmcaddy |<file name|formula displayed)/.test(s);

/** Returns what a file says itself, as its line and its text. */
function textsIn(name, source) {
	const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true, name.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
	const found = [];
	const add = (n, text) => found.push(`${name}:${file.getLineAndCharacterOfPosition(n.getStart(file)).line + 1}: ${text.trim()}`);
	const visit = (n) => {
		if (ts.isTypeNode(n) || ts.isImportDeclaration(n)) return;
		if (ts.isJsxText(n)) {
			if (hasWord(n.text) && !isCode(n.parent)) add(n, n.text);
		} else if (ts.isStringLiteralLike(n) || ts.isTemplateExpression(n)) {
			const pieces = ts.isTemplateExpression(n) ? [n.head, ...n.templateSpans.map((s) => s.literal)].map((p) => p.text) : [n.text];
			if (isSaid(n, pieces)) add(n, pieces.join("…"));
		}
		ts.forEachChild(n, visit);
	};
	visit(file);
	return found;
}

const isCode = (n) => ts.isJsxElement(n) && ["code", "kbd"].includes(n.openingElement.tagName.getText());

function isSaid(n, pieces) {
	const text = pieces.join("…");
	if (!hasWord(text) || names.has(text)) return false;
	const to = useOf(n);
	if (ts.isCallExpression(to) || ts.isNewExpression(to)) {
		if (quiet.test(to.expression.getText())) return false;
	} else if (ts.isJsxExpression(to) && (ts.isJsxElement(to.parent) || ts.isJsxFragment(to.parent))) {
		return !isCode(to.parent);
	}
	const holder = ts.isJsxExpression(to) ? to.parent : to;
	if (ts.isJsxAttribute(holder)) {
		const attribute = holder.name.getText();
		const tag = holder.parent.parent.tagName.getText();
		if (attribute === "name" ? /^(?:Fact|Detail|Part|Measure)$/.test(tag) : read.test(attribute)) return !/^(?:Code|Copy|Markdown|Plain)$/.test(tag) || attribute !== "text";
		return false;
	}
	if (ts.isPropertyAssignment(holder) && holder.initializer !== n && holder.name === n) return false;
	if (ts.isPropertyAssignment(holder) && /^(?:title|text|label|hint|about|action|refusal)$/.test(holder.name.getText())) return true;
	if (ts.isElementAccessExpression(holder) || ts.isCaseClause(holder) || isCompared(n)) return false;
	return isSentence(text) || (pieces.length > 1 && pieces.some((p) => /^ \p{L}{2,}|\p{L}{2,} $|^\p{L}{2,} |^\(\p{L}{2,}/u.test(p)) && !/^(?:lmcaddy |\{\n)/.test(text));
}

const isCompared = (n) => ts.isBinaryExpression(n.parent) && /^(?:[!=]==|in)$/.test(n.parent.operatorToken.getText());

/** Returns what takes the value that an expression is a part of: its choices and sums belong to it. */
function useOf(n) {
	for (let child = n, at = n.parent; ; child = at, at = at.parent) {
		const isPart =
			ts.isParenthesizedExpression(at) || ts.isTemplateSpan(at) || ts.isTemplateExpression(at) ||
			(ts.isConditionalExpression(at) && at.condition !== child) ||
			(ts.isBinaryExpression(at) && /^(?:\+|\?\?|\|\||&&)$/.test(at.operatorToken.getText()));
		if (!isPart) return at;
	}
}

test("texts stand in one file", () => {
	const all = readdirSync("src", { recursive: true }).filter((f) => /\.tsx?$/.test(f) && !others.test(f));
	assert.ok(all.length > 80);
	assert.deepEqual(all.flatMap((f) => textsIn(f, readFileSync(join("src", f), "utf8"))), []);
});

test("a text in a component is found", () => {
	for (const [code, text] of [
		["<p>Hello</p>", "Hello"],
		["<p>{is ? 'yes' : ''}</p>", "yes"],
		["<button aria-label='close'/>", "close"],
		["<Button label={`Delete ${name}`}/>", "Delete …"],
		["<Fact name='size'>{1}</Fact>", "size"],
		["toast('It is done.')", "It is done."],
		["confirm({ title: 'sure', text })", "sure"],
		["new Error(is ? `${name} is large.` : '')", "… is large."],
	])
		assert.deepEqual(textsIn("a.tsx", `const a = ${code}`), [`a.tsx:1: ${text}`], code);
	for (const code of ["<p class='muted hint'>{texts.a.b}</p>", "<code>lmcaddy serve</code>", "e.key === 'Enter' && href('models')", "<Icon name='plus' />"]) assert.deepEqual(textsIn("a.tsx", `const a = ${code}`), [], code);
});
