// The chat that the page holds. It goes on while other views are shown.

import { ApiError, get, isAbort, messageOf, segment, send } from "../core/http";
import { inTab } from "../core/keep";
import { session } from "../core/session";
import { readEvents } from "../core/sse";
import { Store } from "../core/store";
import { announce } from "../ui/toast";
import { cut, failed, isRunning, newAnswer, step } from "./answer";
import type { Answer } from "./answer";
import { clearDraft, draft, edit, keepAsked } from "./draft";
import { changeOptions, fieldsOf, options, resetOptions } from "./options";
import { choose, continues, emptyTree, path, treeOf, withAnswer, without, withTurn } from "./tree";
import type { Question, StoredResponse, Tree, Turn } from "./tree";

export interface Chat {
	tree: Tree;
	/** The id of the stored conversation; empty: there is none yet. */
	conversation: string;
	/** Why it can't be continued here; empty: it can. */
	isReadOnly: string;
	model: string;
	running: string; // the turn that is being answered
	opened: number; // changes when another conversation is shown
}

const empty: Chat = { tree: emptyTree, conversation: "", isReadOnly: "", model: inTab.get("chat.model") ?? "", running: "", opened: 0 };

export const chat = new Store<Chat>(empty);

let running: { stop: () => void } | null = null;
let settling: Promise<void> = Promise.resolve(); // until it is known whether a stopped answer was stored
let lastTurn = 0;

const change = (changes: Partial<Chat>): void => chat.set({ ...chat.value, ...changes });

export function setModel(model: string): void {
	inTab.set("chat.model", model);
	change({ model });
}

/** Begins a new conversation. */
export function newChat(): void {
	stop();
	edit.set(null);
	chat.set({ ...empty, model: chat.value.model, opened: chat.value.opened + 1 });
}

// Whoever signs out leaves nothing behind.
session.follow((s) => {
	if (s.token !== null || s.settings !== null || s.asking !== null || s.generation === 0) return;
	newChat();
	clearDraft();
	keepAsked(null);
	announce(""); // it may have said an answer
	resetOptions();
});

interface StoredConversation {
	id: string;
	dialect: string;
	model: string;
	responses?: StoredResponse[];
}

/** Opens a stored conversation with its branches. An owner is named by administrators, to read that of another. */
export async function openConversation(id: string, owner: string | null, signal?: AbortSignal): Promise<void> {
	const query: Record<string, string | boolean> = { branches: true };
	if (owner !== null) query["owner"] = owner;
	const stored = await get<StoredConversation>("/api/v1/conversations/" + segment(id), { query, signal });
	stop();
	edit.set(null);
	const tree = treeOf(stored.responses ?? []);
	let isReadOnly = "";
	if (owner !== null) isReadOnly = "This is another owner's conversation. You can read it here.";
	else if (stored.dialect !== "native") isReadOnly = "This conversation was held with /v1/responses, which alone can continue it.";
	chat.set({ ...empty, tree, conversation: stored.id, isReadOnly, model: chat.value.model || stored.model, opened: chat.value.opened + 1 });
	if (!isReadOnly) changeOptions({ systemPrompt: systemPromptOf(tree, path(tree).at(-1)?.id ?? "") });
}

/** Returns the system prompt that applies after a turn. */
function systemPromptOf(tree: Tree, after: string): string {
	for (let turn = tree.turns.get(after); turn; turn = tree.turns.get(turn.parent)) {
		if (turn.systemPrompt !== undefined && turn.answer.responseId) return turn.systemPrompt;
	}
	return "";
}

/** Asks what was typed, after the last turn that is shown. */
export function askDraft(): void {
	const question = draft.value;
	if ((question.text.trim() === "" && question.images.length === 0) || chat.value.running || !chat.value.model) return;
	clearDraft();
	void ask(question, path(chat.value.tree).at(-1)?.id ?? "");
}

/** Asks a question again, perhaps another one, as a new branch. */
export function askAgain(turn: Turn, question = turn.question): void {
	if (chat.value.running) return;
	// A turn that failed isn't worth a branch.
	if (turn.answer.phase === "failed" && turn.answer.parts.length === 0) change({ tree: without(chat.value.tree, turn.id) });
	void ask(question, turn.parent);
}

/** Asks a question in a new conversation, of which it is the first. */
export function askAnew(turn: Turn): void {
	if (chat.value.running) return;
	newChat();
	void ask(turn.question, "");
}

export function showBranch(turn: Turn): void {
	show(choose(chat.value.tree, turn));
}

/** Stops the answer. What there is of it is stored, if it is to be. */
export function stop(): void {
	running?.stop();
}

async function ask(question: Question, parent: string): Promise<void> {
	const requestId = randomId();
	const turn: Turn = { id: "turn-" + ++lastTurn, parent, question, answer: newAnswer(requestId), model: chat.value.model };
	const ending = new AbortController();
	const writing = new Writing(turn.id, turn.answer);
	running = { stop: () => ending.abort() };
	change({ tree: withTurn(chat.value.tree, turn), running: turn.id });
	keepAsked(question);
	try {
		await settling;
		ending.signal.throwIfAborted();
		const body = requestOf(question, parent, turn);
		const response = await send("POST", "/api/v1/chat", { body, headers: { "X-Request-Id": requestId }, signal: ending.signal });
		for await (const event of readEvents(response)) writing.change((a) => step(a, event));
		writing.change((a) => cut(a, false));
	} catch (error) {
		const isStopped = ending.signal.aborted && (isAbort(error) || error === ending.signal.reason);
		writing.change((a) => (isStopped ? cut(a, true) : failed(a, failureFrom(error))));
	}
	writing.publish();
	running = null;
	if (writing.answer.phase !== "failed") keepAsked(null);
	if (writing.answer.phase === "stopped") settling = settle(turn.id, writing.answer);
	else void addFigures(turn.id, requestId);
	finish(turn.id, writing.answer);
}

/** The answer that is being received. It is shown once for each frame at most. */
class Writing {
	answer: Answer;
	readonly #turn: string;
	#isDue = false;

	constructor(turn: string, answer: Answer) {
		this.#turn = turn;
		this.answer = answer;
	}

	change(by: (a: Answer) => Answer): void {
		this.answer = by(this.answer);
		if (this.#isDue) return;
		this.#isDue = true;
		const publish = () => this.#isDue && this.publish();
		if (document.visibilityState === "visible") requestAnimationFrame(publish);
		setTimeout(publish, 250); // pages that can't be seen have no frames
	}

	publish(): void {
		this.#isDue = false;
		change({ tree: withAnswer(chat.value.tree, this.#turn, () => this.answer) });
	}
}

function finish(id: string, answer: Answer): void {
	const { tree } = chat.value;
	if (!tree.turns.has(id)) return; // another conversation was opened
	change({ running: "" });
	if (answer.phase !== "stopped") show(tree); // otherwise settle finds out what is stored
	const said = answer.parts.map((p) => (p.kind === "message" ? p.text : "")).join(" ").trim();
	if (answer.phase === "done") announce("The answer is complete. " + said.slice(0, 2000));
	else if (answer.phase === "stopped") announce("The answer was stopped.");
	else announce("The answer failed. " + (answer.failures.at(-1)?.message ?? ""));
}

/** Shows a conversation. Its id is that of its first response: a branch of the first question is a conversation of its own. */
function show(tree: Tree): void {
	const first = path(tree).find((t) => t.answer.responseId && !isRunning(t.answer));
	change({ tree, conversation: first?.answer.responseId ?? "" });
}

function requestOf(question: Question, parent: string, turn: Turn): Record<string, unknown> {
	const { tree, model } = chat.value;
	const o = options.value;
	const body: Record<string, unknown> = { model, ...fieldsOf(o), stream: true };
	body["input"] =
		question.images.length === 0
			? question.text
			: [
					...(question.text ? [{ type: "message", content: question.text }] : []),
					...question.images.map((url) => ({ type: "image", data_url: url })),
				];
	const previous = continues(tree, parent);
	if (previous) body["previous_response_id"] = previous;
	if (o.systemPrompt !== systemPromptOf(tree, parent)) {
		body["system_prompt"] = o.systemPrompt;
		turn.systemPrompt = o.systemPrompt; // the turn isn't shown with it
	}
	return body;
}

function failureFrom(error: unknown) {
	if (!(error instanceof ApiError))
		return { message: error instanceof TypeError ? "The connection was lost before the answer was complete." : messageOf(error) };
	const message = error.code === lostConversation ? whyLost() : error.message;
	return { message, code: error.code, param: error.param, status: error.status };
}

/** The code of the error of an answer that can't be continued, because the server doesn't have it for this token. */
export const lostConversation = "previous_response_not_found";

function whyLost(): string {
	return session.value.settings?.authentication
		? "This conversation can't be continued: it was deleted, or it belongs to another token than the one you use now."
		: "This conversation can't be continued: it was deleted.";
}

const tries = 12;
const between = 250; // milliseconds

/** Finds out whether a stopped answer was stored: the chat can only go on from one that was. */
async function settle(id: string, answer: Answer): Promise<void> {
	let stored: StoredResponse | null = null;
	for (let i = 0; answer.responseId && !stored && i < tries; i++) {
		if (i > 0) await pause();
		stored = await get<StoredResponse>("/api/v1/responses/" + segment(answer.responseId)).catch(() => null);
	}
	const kept = stored && treeOf([stored]).turns.get(stored.response_id)?.answer;
	const responseId = stored?.response_id ?? "";
	const found = { responseId, status: stored?.status ?? "discarded", stats: kept?.stats ?? null, cachedTokens: kept?.cachedTokens ?? null };
	const tree = withAnswer(chat.value.tree, id, (a) => ({ ...a, ...found }));
	show(tree);
}

interface Figures {
	id: string;
	duration_seconds?: number;
	cached_tokens?: number;
	queue_seconds?: number;
}

/** Adds what only the list of requests has. */
async function addFigures(id: string, requestId: string): Promise<void> {
	for (let i = 0; i < 4; i++) {
		if (i > 0) await pause();
		const list = await get<{ requests: Figures[] }>("/api/v1/requests", { query: { limit: 50 } }).catch(() => null);
		const found = list?.requests.find((r) => r.id === requestId);
		if (found?.duration_seconds === undefined) continue;
		change({
			tree: withAnswer(chat.value.tree, id, (a) => ({ ...a, cachedTokens: found.cached_tokens ?? 0, queueSeconds: found.queue_seconds ?? 0 })),
		});
		return;
	}
}

const pause = () => new Promise((resolve) => setTimeout(resolve, between));

/** Returns a new id of a request. */
function randomId(): string {
	return "page-" + [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

export { isRunning };
