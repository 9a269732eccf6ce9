// What is typed and not yet answered. It outlives a reload of the page, as long as its tab is open.

import { inTab } from "../core/keep";
import { Store } from "../core/store";
import type { Question, Turn } from "./tree";

const none: Question = { text: "", images: [] };

/** The question that is being written. */
export const draft = new Store<Question>(kept("chat.draft") ?? kept("chat.asked") ?? none);

draft.follow((d) => keep("chat.draft", d));
inTab.set("chat.asked", null);

/** Keeps a question until it is answered. */
export const keepAsked = (q: Question | null): void => keep("chat.asked", q);

/** A question or an answer of the conversation that is being changed. */
export const edit = new Store<{ turn: string; of: "question" | "answer"; text: string } | null>(null);

/** The turn whose question another model is to be asked. */
export const otherModelFor = new Store<Turn | null>(null);

export const clearDraft = (): void => draft.set(none);

/** Reports whether there is nothing to ask. */
export const isEmpty = (q: Question): boolean => q.text.trim() === "" && q.images.length === 0 && !q.files?.length && !q.recordings?.length;

function keep(name: string, q: Question | null): void {
	const kept = q && { ...q, recordings: undefined }; // they would fill what the browser keeps
	inTab.set(name, kept && !isEmpty(kept) ? JSON.stringify(kept) : null);
}

function kept(name: string): Question | null {
	try {
		const q = JSON.parse(inTab.get(name) ?? "null") as Question | null;
		return q && typeof q.text === "string" && Array.isArray(q.images) ? q : null;
	} catch {
		return null;
	}
}
