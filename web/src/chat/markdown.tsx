// Markdown as Preact nodes, never as HTML. What an answer says is data: HTML in it is shown as text, nothing is loaded from other hosts, and
// links lead to web pages or mail addresses only.

import type { Token, Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";
import { Blocks } from "./blocks";
import type { Block } from "./blocks";
import { safeLink, textOf, visible } from "./text";

/** An answer's text. While it streams, only its last block is parsed anew. */
export function Markdown({ text, done, Copy }: { text: string; done: boolean; Copy: CopyButton }) {
	const first = text.length > 0; // a text that begins anew gets blocks of its own
	const state = useMemo(() => ({ blocks: new Blocks(), seen: "", ended: false }), [first]);
	if (!text.startsWith(state.seen) || (state.ended && text !== state.seen)) {
		state.blocks = new Blocks();
		state.ended = false;
	}
	let tail: Block | null = null;
	if (!done) tail = state.blocks.feed(text);
	else if (!state.ended) {
		state.blocks.end(text);
		state.ended = true;
	}
	state.seen = text;
	const closed = state.blocks.closed;
	return (
		<div class="md" dir="auto">
			{closed.map((b, i) => (
				<Shown key={i} block={b} Copy={Copy} />
			))}
			{tail && <Shown key={closed.length} block={tail} Copy={Copy} />}
		</div>
	);
}

/** The button that copies a text. */
export type CopyButton = (props: { text: string; label?: string }) => JSX.Element;

const Shown = memo(function Shown({ block, Copy }: { block: Block; Copy: CopyButton }) {
	switch (block.kind) {
		case "plain":
			return <Plain text={block.text} />;
		case "code":
			return <Code lang={block.lang} text={block.text} Copy={Copy} />;
		default:
			return <>{block.tokens.map((t) => node(t, Copy))}</>;
	}
});

// Pieces of long texts, in characters: the browser lays out each by itself, and only those in view.
const piece = 16 << 10;
const mostShown = 8 << 20;

/** Text as it is. */
export function Plain({ text, class: name = "plain" }: { text: string; class?: string }) {
	return (
		<div class={name}>
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
		else if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1])) to++;
		pieces.push(text.slice(from, to));
		from = to;
	}
	return (
		<>
			{pieces.map((p, i) => (
				<Piece key={i} text={p} />
			))}
			{text.length > mostShown && <div class="piece">… The rest isn’t shown. Copy has all of it.</div>}
		</>
	);
}

const Piece = memo(({ text }: { text: string }) => <div class="piece">{visible(text)}</div>);

function Code({ lang, text, Copy }: { lang: string; text: string; Copy: CopyButton }) {
	const name = lang.split(/\s/, 1)[0].slice(0, 40);
	return (
		<div class="code">
			<div class="code-bar">
				<span>{name || "text"}</span>
				<Copy text={text} label="Copy code" />
			</div>
			<pre tabIndex={0} role="group" aria-label={name ? `Code, ${name}` : "Code"}>
				<code dir="ltr">
					<Pieces text={text} />
				</code>
			</pre>
		</div>
	);
}

function inline(tokens: Token[] | undefined, Copy: CopyButton): ComponentChildren {
	return tokens?.map((t) => node(t, Copy));
}

function node(token: Token, Copy: CopyButton): ComponentChildren {
	const t = token as Tokens.Generic;
	const within = () => inline(t.tokens, Copy);
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
			return <Code lang={t.lang ?? ""} text={t.text} Copy={Copy} />;
		case "heading":
			return heading(Math.min(6, t.depth + 2), within());
		case "hr":
			return <hr />;
		case "blockquote":
			return <blockquote>{within()}</blockquote>;
		case "list":
			return list(token as Tokens.List, Copy);
		case "checkbox":
			return null; // list shows it
		case "table":
			return table(token as Tokens.Table, Copy);
		case "link":
			return <Link href={t.href}>{within()}</Link>;
		case "image":
			return <Link href={t.href}>🖼 {visible(textOf(t.text)) || "image"}</Link>;
		default:
			return visible(t.raw); // HTML, and whatever else there may be
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

function list(t: Tokens.List, Copy: CopyButton) {
	const items = t.items.map((item) => (
		<li class={item.task ? "task" : undefined}>
			{item.task && (
				<span role="img" aria-label={item.checked ? "done" : "to do"}>
					{item.checked ? "☑ " : "☐ "}
				</span>
			)}
			{inline(item.tokens, Copy)}
		</li>
	));
	return t.ordered ? <ol start={t.start === "" ? 1 : t.start}>{items}</ol> : <ul>{items}</ul>;
}

function table(t: Tokens.Table, Copy: CopyButton) {
	return (
		<div class="md-table" tabIndex={0} role="group" aria-label="Table">
			<table>
				<thead>
					<tr>
						{t.header.map((c) => (
							<th class={c.align ?? undefined}>{inline(c.tokens, Copy)}</th>
						))}
					</tr>
				</thead>
				<tbody>
					{t.rows.map((row) => (
						<tr>
							{row.map((c) => (
								<td class={c.align ?? undefined}>{inline(c.tokens, Copy)}</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
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
