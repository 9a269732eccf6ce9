// Markdown as Preact nodes, never as HTML. What an answer says is data: HTML in it is shown as text, nothing is loaded from other hosts, and
// links lead to web pages or mail addresses only.

import type { Token, Tokens } from "marked";
import { h } from "preact";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { usePart } from "../core/parts";
import type { Piece } from "../parts/highlight";
import { Copy } from "../ui/Copy";
import { Icon } from "../ui/icons";
import { Blocks } from "./blocks";
import type { Block } from "./blocks";
import { safeLink, textOf, visible } from "./text";
import { texts } from "../texts";

/** An answer's text. While it grows, only its last block is parsed anew. */
export function Markdown({ text, done }: { text: string; done: boolean }) {
	const parsed = useRef<Parsed>(null);
	if (!parsed.current || !text.startsWith(parsed.current.text) || (parsed.current.isComplete && text !== parsed.current.text)) {
		parsed.current = { blocks: new Blocks(), text: "", isComplete: false };
	}
	const { blocks, isComplete } = parsed.current;
	let tail: Block[] = [];
	if (!done) tail = blocks.feed(text);
	else if (!isComplete) blocks.end(text);
	parsed.current.text = text;
	parsed.current.isComplete = done;
	const { closed } = blocks;
	return (
		<div class="md" dir="auto">
			{[...closed, ...tail].map((b, i) => (
				<Shown key={i} block={b} isOpen={i >= closed.length} />
			))}
		</div>
	);
}

interface Parsed {
	blocks: Blocks;
	text: string;
	isComplete: boolean;
}

const Shown = memo(function Shown({ block, isOpen }: { block: Block; isOpen: boolean }) {
	switch (block.kind) {
		case "plain":
			return <Plain text={block.text} />;
		case "code":
			return <Code lang={block.lang} text={block.text} isOpen={isOpen} />;
		default:
			return <>{block.tokens.map(node)}</>;
	}
});

// Pieces of long texts, in characters: the browser lays out each by itself, and only those in view.
const piece = 16 << 10;
const mostShown = 8 << 20;

/** Text as it is. One with a label may be long, and is scrolled by itself. */
export function Plain({ text, class: name = "plain", label }: { text: string; class?: string; label?: string }) {
	return (
		<div class={name} {...(label && { role: "group", "aria-label": label, tabIndex: 0 })}>
			<Pieces text={text} />
		</div>
	);
}

function Pieces({ text }: { text: string }) {
	if (text.length <= piece) return <>{visible(text)}</>;
	const pieces: string[] = [];
	for (let from = 0; from < Math.min(text.length, mostShown);) {
		let to = Math.min(from + piece, text.length);
		const line = text.lastIndexOf("\n", to - 1) + 1;
		if (line > from && to < text.length) to = line;
		else if (to < text.length && /[\uD800-\uDBFF]/.test(text.charAt(to - 1))) to++;
		pieces.push(text.slice(from, to));
		from = to;
	}
	return (
		<>
			{pieces.map((p, i) => (
				<Piece key={i} text={p} />
			))}
			{text.length > mostShown && <span class="piece">{texts.markdown.restShownCopy}</span>}
		</>
	);
}

const Piece = memo(({ text }: { text: string }) => <span class="piece">{visible(text)}</span>);

const mostColoured = 64 << 10; // characters of code

/** Code, which gets its colours when it is complete. */
function Code({ lang, text, isOpen = false }: { lang: string; text: string; isOpen?: boolean }) {
	const name = /^\S{1,40}/.exec(lang)?.[0] ?? "";
	const isColoured = name !== "" && !isOpen && text.length <= mostColoured;
	const part = usePart("highlight", isColoured);
	const pieces = useMemo(() => (isColoured && part?.highlight(name, visible(text))) || null, [isColoured, part, name, text]);
	return (
		<div class="md-code">
			<div class="code-bar">
				<span>{name || texts.markdown.text}</span>
				<Copy text={text} label={texts.markdown.copyCode} />
			</div>
			<pre tabIndex={0} role="group" aria-label={name ? texts.markdown.codeName(name) : texts.markdown.code}>
				<code dir="ltr">
					{pieces ? pieces.map(coloured) : <Pieces text={text} />}
				</code>
			</pre>
		</div>
	);
}

function coloured(piece: Piece): ComponentChildren {
	return typeof piece === "string" ? piece : <span class={piece.className}>{piece.pieces.map(coloured)}</span>;
}

/** The tags that are more than text: those of inline elements without attributes, which can't do anything. */
const elements = new Set(["b", "code", "del", "em", "i", "ins", "kbd", "mark", "s", "small", "strong", "sub", "sup", "u"]);

/** Inline tokens as nodes. A tag that isn't closed among them is shown as it is written. */
function inline(tokens: Token[] | undefined): ComponentChildren {
	const open: { name: string; tag: string; before: ComponentChildren[] }[] = [];
	let nodes: ComponentChildren[] = [];
	for (const token of tokens ?? []) {
		const [, slash, name = ""] = (token.type === "html" && /^<(\/?)([a-z]+)>$/i.exec(token.raw)) || [];
		const element = name.toLowerCase();
		if (!elements.has(element)) {
			nodes.push(node(token));
		} else if (!slash) {
			open.push({ name: element, tag: token.raw, before: nodes });
			nodes = [];
		} else if (open.at(-1)?.name === element) {
			nodes = [...(open.pop()?.before ?? []), h(element, null, nodes)];
		} else {
			nodes.push(token.raw);
		}
	}
	for (let tag = open.pop(); tag; tag = open.pop()) nodes = [...tag.before, tag.tag, ...nodes];
	return nodes;
}

function node(token: Token): ComponentChildren {
	const t = token as Tokens.Generic;
	const within = () => inline(t.tokens);
	switch (t.type) {
		case "space":
		case "def":
			return null;
		case "paragraph":
			return <p>{within()}</p>;
		case "text":
			return t.tokens ? within() : visible(t.escaped ? t.text : textOf(t.text));
		case "escape":
			return visible(t.text);
		case "strong":
			return <strong>{within()}</strong>;
		case "em":
			return <em>{within()}</em>;
		case "del":
			return <del>{within()}</del>;
		case "br":
			return <br />;
		case "codespan":
			return <code dir="ltr">{visible(t.text)}</code>;
		case "code":
			return <Code lang={t.lang ?? ""} text={t.text} />;
		case "heading":
			return heading(Math.min(6, t.depth + 2), within());
		case "hr":
			return <hr />;
		case "blockquote":
			return <blockquote>{within()}</blockquote>;
		case "list":
			return list(token as Tokens.List);
		case "checkbox":
			return null; // list shows it
		case "table":
			return table(token as Tokens.Table);
		case "link":
			return <Link href={t.href}>{within()}</Link>;
		case "image":
			return (
				<Link href={t.href}>
					<Icon name="image" /> {visible(textOf(t.text)) || texts.markdown.image}
				</Link>
			);
		case "formula":
			return <Formula text={t.text} isDisplayed={t["isDisplayed"] === true} />;
		case "html":
			return /^(?:<br *\/?>\s*)+$/i.test(t.raw) ? <br /> : visible(t.raw);
		default:
			return visible(t.raw);
	}
}

function heading(level: number, text: ComponentChildren) {
	switch (level) {
		case 3:
			return <h3>{text}</h3>;
		case 4:
			return <h4>{text}</h4>;
		case 5:
			return <h5>{text}</h5>;
		default:
			return <h6>{text}</h6>;
	}
}

function list(t: Tokens.List) {
	const items = t.items.map((item) => (
		<li class={item.task ? "task" : undefined}>
			{item.task && (
				<span role="img" aria-label={item.checked ? texts.markdown.done : texts.markdown.toDo}>
					{item.checked ? "☑ " : "☐ "}
				</span>
			)}
			{inline(item.tokens)}
		</li>
	));
	return t.ordered ? <ol start={t.start === "" ? 1 : t.start}>{items}</ol> : <ul>{items}</ul>;
}

function table(t: Tokens.Table) {
	return (
		<div class="md-table" tabIndex={0} role="group" aria-label={texts.markdown.table}>
			<table>
				<thead>
					<tr>
						{t.header.map((c) => (
							<th class={c.align ?? undefined}>{inline(c.tokens)}</th>
						))}
					</tr>
				</thead>
				<tbody>
					{t.rows.map((row) => (
						<tr>
							{row.map((c) => (
								<td class={c.align ?? undefined}>{inline(c.tokens)}</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

/** A formula: as it is written, until what shows it is loaded. */
function Formula({ text, isDisplayed }: { text: string; isDisplayed: boolean }) {
	const part = usePart("math", true);
	const at = useRef<HTMLSpanElement>(null);
	useLayoutEffect(() => {
		if (at.current) part?.show(text, isDisplayed, at.current);
	}, [part, text, isDisplayed]);
	const name = isDisplayed ? "formula displayed" : "formula";
	if (!part) return <code class={name}>{visible(text)}</code>;
	return <span class={name} ref={at} {...(isDisplayed && { tabIndex: 0, role: "group", "aria-label": texts.markdown.formula })} />;
}

/** A link to a web page or a mail address. Any other is shown as its text and its target. */
function Link({ href, children }: { href: string; children: ComponentChildren }) {
	const target = safeLink(href);
	if (!target)
		return (
			<span class="dead-link">
				{children} ({visible(href.slice(0, 200))})
			</span>
		);
	return (
		<a href={target} target="_blank" rel="noopener noreferrer" title={target}>
			{children}
		</a>
	);
}
