// The colours of code, which are loaded when they are first needed.

import { common, createLowlight } from "lowlight";

/** A piece of code: a text, or pieces with a class. */
export type Piece = string | { className: string; pieces: Piece[] };

interface Node {
	type: string;
	value?: string;
	properties?: { className?: unknown };
	children?: Node[];
}

const lowlight = createLowlight(common);

/** Returns the pieces of a text in a language; null: the language isn't known. */
export function highlight(language: string, text: string): Piece[] | null {
	const name = language.toLowerCase();
	return lowlight.registered(name) ? (lowlight.highlight(name, text) as Node).children?.map(pieceOf) ?? null : null;
}

function pieceOf(node: Node): Piece {
	if (node.type === "text") return node.value ?? "";
	const { className } = node.properties ?? {};
	return { className: Array.isArray(className) ? className.join(" ") : "", pieces: node.children?.map(pieceOf) ?? [] };
}
