// Conversations as files, and back.

import { get, post, segment } from "../core/http";
import type { Conversation, Conversations } from "../core/types";
import { asMarkdown } from "./export";
import { treeOf } from "./tree";
import type { StoredResponse } from "./tree";
import { texts } from "../texts";

const path = "/api/v1/conversations";

/** Returns all conversations with all branches. */
export async function allConversations(): Promise<Conversation[]> {
	const all: Conversation[] = [];
	for (let cursor: string | null = ""; cursor !== null; ) {
		const page: Conversations = await get<Conversations>(path, { query: { limit: 100, cursor } });
		for (const { id } of page.conversations) all.push(await get(`${path}/${segment(id)}`, { query: { branches: true } }));
		cursor = page.next_cursor;
	}
	return all;
}

/** Returns conversations as Markdown, each with its newest branch. */
export function allAsMarkdown(all: Conversation[]): string {
	return all.map((c) => `# ${c.title || texts.common.untitled}\n\n${asMarkdown(treeOf((c.responses ?? []) as StoredResponse[]))}`).join("\n");
}

/** Stores the conversations of a file that was exported as JSON, and returns how many. The error says what is wrong with it. */
export async function importFile(file: File): Promise<number> {
	const conversations = conversationsIn(await file.text());
	for (const c of conversations) await post(path, c);
	return conversations.length;
}

interface Imported {
	title?: string;
	pinned?: boolean;
	responses: { response_id?: string; previous_response_id?: string | null }[];
}

/** Returns the conversations of a file as they can be stored: what continues a response that was deleted continues the first one. */
export function conversationsIn(text: string): Imported[] {
	let content: { conversations?: unknown; responses?: unknown };
	try {
		content = JSON.parse(text) as typeof content;
	} catch {
		throw new Error(texts.files.fileJsonChooseOne);
	}
	const all = (Array.isArray(content?.conversations) ? content.conversations : [content]) as Imported[];
	const filled = all.filter((c) => Array.isArray(c?.responses) && c.responses.length > 0);
	if (filled.length === 0) throw new Error(texts.files.fileNoConversationsChoose);
	return filled.map(({ title, pinned, responses }) => {
		const first = responses[0]?.response_id;
		const known = new Set<string | undefined>();
		const linked = responses.map((r, i) => {
			const previous = known.has(r.previous_response_id ?? "") ? r.previous_response_id : first;
			known.add(r.response_id);
			const { previous_response_id: _, ...rest } = r;
			return i === 0 ? rest : { ...rest, previous_response_id: previous };
		});
		return { ...(title && { title }), ...(pinned && { pinned }), responses: linked };
	});
}
