import assert from "node:assert/strict";
import { test } from "node:test";
import { marked } from "marked";
import { Blocks, bounds } from "../src/chat/blocks.ts";
import { safeLink, textOf, visible } from "../src/chat/text.ts";

function whole(text) {
	const blocks = new Blocks();
	blocks.end(text);
	return blocks.closed;
}

/** What each block is: the types of its tokens, or its kind. */
const kinds = (text) =>
	whole(text).map((b) =>
		b.kind === "tokens"
			? b.tokens
					.map((t) => t.type)
					.filter((t) => t !== "space")
					.join("+")
			: b.kind,
	);

const pieces = [
	..."- one\n- two\n|1. a\n2. b\n|- [x] done\n|\t- tab\n|  - in\n|- ```\n  in\n  ```\n|\n|\n\n|```js\nlet a = 1;\n```\n|~~~\n```\n~~~\n|```\nopen\n|> quote\n> more\n|> ```\n> x\n".split("|"),
	..."<div>\n<b>x</b>\n</div>\n|<!-- c\n|-->\n|<br>\n|After *that*\n|two\nlines\n|===\n|---\n|# h\n|    code\n|   more\n|text  \n|\\\n|\r\n|&amp; <kbd>x</kbd>\n|`a|*|-|`|1.| |x\n".split("|"),
	..."[x] and [y][x]\n@[x]: https://example.com/\n@'t'\n@[x]:\n@[q]: /u \"t\n@end\"\n@| a | b |\n|---|---|\n| 1 | 2 |\n@| c |\n@|---|\n".split("@"),
];

/** The HTML that marked makes of blocks, which are in the bounds. */
const html = (blocks) => marked.parser(blocks.flatMap((b) => (b.kind === "code" ? [{ type: "code", raw: "", lang: b.lang, text: b.text }] : b.tokens)));

test("wherever a text is cut on its way, it becomes what marked makes of all of it", () => {
	let seed = 1;
	const random = (n) => Math.floor(((seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff) * n);
	for (let i = 0; i < 400; i++) {
		const text = Array.from({ length: 1 + random(7) }, () => pieces[random(pieces.length)]).join("");
		const blocks = new Blocks();
		for (let at = 0; at < text.length; ) {
			at += 1 + random(8);
			const tail = blocks.feed(text.slice(0, at));
			// What is defined later isn't known yet, and half a line end is none.
			if (!/\]:|\r$/.test(text.slice(0, at))) assert.equal(html([...blocks.closed, ...tail]), marked.parse(text.slice(0, at)), JSON.stringify(text.slice(0, at)));
		}
		blocks.end(text);
		assert.equal(html(blocks.closed), marked.parse(text), JSON.stringify(text));
	}
});

test("formulas are found, also as they grow", () => {
	const text = "Let \\(a_1 * b\\) be $5, $$x_*$$.\n\n\\[\na\n- b\n= c\n\\]\n\n$$\n\\sum_i^n\n$$\nAfter\n\n\\[ none\n\nend \\]\n";
	const formulasIn = (blocks) => JSON.stringify(blocks).match(/"type":"formula".*?"text":"(.*?)"/g)?.map((m) => JSON.parse('"' + m.split('"text":"')[1]));
	const want = ["a_1 * b", "x_*", "a\n- b\n= c", "\\sum_i^n"];
	assert.deepEqual(formulasIn(whole(text)), want);
	for (const size of [1, 3, 10]) {
		const blocks = new Blocks();
		for (let at = size; at < text.length + size; at += size) blocks.feed(text.slice(0, at));
		blocks.end(text);
		assert.deepEqual(formulasIn(blocks.closed), want);
	}
});

test("text is cut into blocks where Markdown allows it", () => {
	assert.deepEqual(kinds("- one\n- two\n\n```js\nlet a = 1;\n```\n\nAfter"), ["list", "code", "paragraph"]);
	assert.deepEqual(kinds("# One\n\ntwo\nthree\n\n- a\n\n  still a\n- b\n\nfour\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"), [
		"heading",
		"paragraph",
		"list",
		"paragraph",
		"table",
	]);
	assert.deepEqual(kinds("text\n```go\nx := 1\n\n# no heading\n```\nafter"), ["paragraph", "code", "paragraph"]);
	assert.deepEqual(whole("```go\nx := 1\n\n# no heading\n```\n"), [{ kind: "code", lang: "go", text: "x := 1\n\n# no heading" }]);
	assert.deepEqual(whole("~~~\n```\n~~~"), [{ kind: "code", lang: "", text: "```" }]);
	assert.deepEqual(kinds("1. a\n\n   ```\n   code\n   ```\n\n2. b"), ["list"]);
	assert.deepEqual(kinds("\n\n\n"), []);
});

test("what was cut once stays, wherever the text is cut on its way", () => {
	const text = "# One\n\nsome *text*\n\n```go\nfunc main() {\n}\n```\n\n- a\n- b\n\nend\n\n| a |\n|---|\n| b |";
	const want = whole(text);
	for (const size of [1, 2, 3, 7, 50]) {
		const blocks = new Blocks();
		let before = [];
		for (let to = size; to < text.length + size; to += size) {
			blocks.feed(text.slice(0, to));
			before.forEach((b, i) => assert.equal(blocks.closed[i], b));
			before = [...blocks.closed];
		}
		blocks.end(text);
		assert.deepEqual(blocks.closed, want);
	}
});

test("the open block is shown as it grows", () => {
	const blocks = new Blocks();
	assert.deepEqual(blocks.feed(""), []);
	assert.equal(blocks.feed("some *te")[0].kind, "tokens");
	assert.equal(blocks.feed("some *text*\n\n```py"), blocks.feed("some *text*\n\n```py"));
	assert.equal(blocks.feed("some *text*\n\n```python").at(-1).kind, "code");
	assert.equal(blocks.feed("some *text*\n\n```python\nprint(1").at(-1).text, "print(1");
	assert.equal(blocks.closed.length, 1);
});

test("a table that is too long for a block keeps its head", () => {
	const rows = Array.from({ length: 1000 }, (_, i) => `| ${i} | some more text |`);
	const blocks = whole("| a | b |\n|---|---|\n" + rows.join("\n"));
	assert.ok(blocks.length > 1);
	assert.deepEqual(
		blocks.map((b) => b.tokens?.[0]?.type),
		blocks.map(() => "table"),
	);
	assert.equal(
		blocks.reduce((n, b) => n + b.tokens[0].rows.length, 0),
		1000,
	);
});

// Each is repeated until it has the length.
const hostile = {
	"open brackets": "[",
	"open images": "![",
	links: "[a](b)",
	"open links": "[a](",
	stars: "*a ",
	"many stars": "*",
	underscores: "_a",
	ticks: "`a",
	tildes: "~~a",
	quotes: ">",
	"spaced quotes": "> ",
	lists: "- ",
	numbers: "1. ",
	rules: "* ",
	tags: "<a ",
	comments: "<!--",
	pipes: "|",
	backslashes: "\\",
	spaces: " ",
	mail: "a.",
	addresses: "a@",
	"links in text": "http://",
	lines: "a\n",
	definitions: "[a]: b\n",
	titles: '[a](b "',
	paragraphs: "a\n\n",
	items: "- a\n",
	"far items": "- a\n\n",
	"quoted lines": "> a\n",
	fences: "```\n",
	"open fences": "```a\n~~~\n",
	headings: "# a\n",
	tables: "|a|\n|-|\n",
	emphasis: "***a",
	entities: "&a",
	tabs: "\t",
	html: "<div>\n",
	tasks: "- [ ] ",
	formulas: "\\(a\\)",
	"open formulas": "\\(a\\[$$",
	"lines of formulas": "\\[a\n$$b\n",
};

for (const [name, piece] of Object.entries(hostile)) {
	test("a megabyte of " + name + " is parsed in bounds", () => {
		const text = piece.repeat(Math.ceil((1 << 20) / piece.length));
		const began = process.cpuUsage(); // others may keep the machine busy
		const blocks = new Blocks();
		for (let to = 1 << 14; to < text.length; to += 1 << 14) blocks.feed(text.slice(0, to));
		blocks.end(text);
		const { user, system } = process.cpuUsage(began);
		const parsing = (user + system) / 1000;
		assert.ok(parsing < 20 * bounds.milliseconds, `${parsing} ms`);
		const tokens = blocks.closed.filter((b) => b.kind === "tokens").length;
		assert.ok(tokens <= bounds.blocks + 1, `${tokens} blocks`);
		const size = blocks.closed.reduce((n, b) => n + (b.kind === "tokens" ? b.tokens.reduce((m, t) => m + t.raw.length, 0) : b.text.length), 0);
		if (/^\S+$/.test(piece)) assert.ok(size >= text.length * 0.99, `${text.length - size} characters are missing`);
	});
}

test("deep nesting is shown as text", () => {
	for (const text of ["[".repeat(200_000) + "]".repeat(200_000), ">".repeat(2000) + "x", "- ".repeat(1000) + "x", "1. ".repeat(1000) + "x"]) {
		assert.deepEqual(kinds(text), ["plain"]);
		assert.equal(whole(text)[0].text, text);
	}
	let deep = "";
	for (let i = 0; i < 200; i++) deep += " ".repeat(2 * i) + "- x\n";
	assert.ok(whole(deep).every((b) => b.kind !== "tokens" || b.tokens.length < 50));
});

test("only links to web pages and mail addresses can be followed", () => {
	for (const href of [
		"javascript:alert(1)",
		"JaVaScRiPt:alert(1)",
		"java\nscript:alert(1)",
		"\u0001javascript:alert(1)",
		" javascript:alert(1)",
		"data:text/html,x",
		"vbscript:x",
		"file:///etc/passwd",
		"blob:http://x/y",
		"//evil.example/x",
		"/api/v1/tokens",
		"#/tokens",
		"http:/x",
		"https://",
		"http://[",
		"",
		"https://example.com/" + "a".repeat(5000),
	])
		assert.equal(safeLink(href), "", href);
	assert.equal(safeLink("https://example.com/a b"), "https://example.com/ab");
	assert.equal(safeLink("HTTP://example.com"), "http://example.com/");
	assert.equal(safeLink("mailto:ada@example.com"), "mailto:ada@example.com");
});

test("characters that reorder text are shown", () => {
	assert.equal(visible("a\u202Eb\u2066c"), "a⟨U+202E⟩b⟨U+2066⟩c");
	assert.equal(visible("שלום\u200F!"), "שלום\u200F!");
});

test("entities are the characters that they mean, once", () => {
	assert.equal(
		textOf("&lt;script&gt; &amp;lt; &#60; &#x3c; &nosuch; &#0; &#xD800; &#99999999;"),
		"<script> &lt; < < &nosuch; \uFFFD \uFFFD &#99999999;",
	);
});
