// The chat that the page holds. It goes on while other views are shown.

import { call, get, post, segment } from "../core/http";
import { inBrowser } from "../core/keep";
import { currentView, replace } from "../core/router";
import { onSignOut, session } from "../core/session";
import { Store } from "../core/store";
import type { Conversation } from "../core/types";
import { announce } from "../ui/toast";
import { cutText, isRunning, newAnswer, outputOf } from "./answer";
import type { Answer } from "./answer";
import { approveKnown } from "./approval";
import { clearDraft, draft, edit, isEmpty, keepAsked } from "./draft";
import { withFiles } from "./files";
import { Live } from "./live";
import { changeOptions, fieldsOf, options, resetOptions } from "./options";
import { giveTitle } from "./titles";
import { branches, choose, continues, emptyTree, inputOf, path, treeOf, withAnswer, without, withTurn } from "./tree";
import type { Question, StoredResponse, Tree, Turn } from "./tree";
import { texts } from "../texts";

export interface Chat {
	tree: Tree;
	/** The id of the stored conversation; empty: there is none yet. */
	conversation: string;
	/** Why it can't be continued here; empty: it can. */
	isReadOnly: string;
	model: string;
	running: string; // the turn that is being answered
	answered: number; // changes when an answer has ended
	opened: number; // changes when another conversation is shown
}

const empty: Chat = { tree: emptyTree, conversation: "", isReadOnly: "", model: inBrowser.get("chat.model") ?? "", running: "", answered: 0, opened: 0 };

export const chat = new Store<Chat>(empty);

let live: Live | null = null; // the answer that is shown as it grows
let lastTurn = 0;

const change = (changes: Partial<Chat>): void => chat.set({ ...chat.value, ...changes });

export function setModel(model: string): void {
	inBrowser.set("chat.model", model);
	change({ model });
}

/** Begins a new conversation. */
export function newChat(): void {
	leave();
	edit.set(null);
	chat.set({ ...empty, model: chat.value.model, opened: chat.value.opened + 1 });
	if (currentView() === "chat") replace("chat");
}

onSignOut(() => {
	newChat();
	clearDraft();
	keepAsked(null);
	announce(""); // it may have said an answer
	resetOptions();
	inBrowser.set("chat.model", null);
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
	leave();
	edit.set(null);
	const tree = treeOf(stored.responses ?? []);
	let isReadOnly = "";
	if (owner !== null) isReadOnly = texts.chat.anotherOwnersConversationYou;
	else if (stored.dialect !== "native") isReadOnly = texts.chat.conversationHeldV1Responses;
	chat.set({ ...empty, tree, conversation: stored.id, isReadOnly, model: chat.value.model || stored.model, opened: chat.value.opened + 1 });
	if (isReadOnly) return;
	const last = path(tree).at(-1);
	changeOptions({ systemPrompt: systemPromptOf(tree, last?.id ?? "") });
	if (last && isRunning(last.answer)) void makeAnswer(last, true, (l) => l.join());
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
	const { text, images, files, recordings } = draft.value;
	const question = { text: withFiles(text, files ?? []), images, recordings };
	if (isEmpty(draft.value) || chat.value.running || !chat.value.model) return;
	clearDraft();
	void ask(question, path(chat.value.tree).at(-1)?.id ?? "");
}

/** How a question is asked again. */
interface Again {
	question?: Question;
	model?: string;
	/** With what the answer begins. */
	prefill?: string;
}

/** Asks a question again, perhaps another one or another model, as a new branch. */
export function askAgain(turn: Turn, again: Again = {}): void {
	if (chat.value.running) return;
	// A turn that failed isn't worth a branch.
	const { phase, parts, responseId } = turn.answer;
	if (phase === "failed" && parts.length === 0 && !branches(chat.value.tree).has(turn.id)) {
		change({ tree: without(chat.value.tree, turn.id) });
		if (responseId) void call("DELETE", "/api/v1/responses/" + segment(responseId)).catch(() => undefined); // then it stays
	}
	void ask(again.question ?? turn.question, turn.parent, again);
}

/** Has the model go on with an answer that was cut. The whole one takes its place. */
export async function goOn(turn: Turn): Promise<void> {
	const prefill = cutText(turn.answer);
	if (chat.value.running || !prefill) return;
	const { phase, responseId } = await ask(turn.question, turn.parent, { prefill, model: turn.model });
	if (phase !== "done" || !responseId || branches(chat.value.tree).has(turn.id) || !chat.value.tree.turns.has(turn.id)) return;
	change({ tree: without(chat.value.tree, turn.id) });
	await call("DELETE", "/api/v1/responses/" + segment(turn.answer.responseId)).catch(() => undefined); // then it stays
}

/** Stores an answer with another text, as a new branch. */
export async function saveAnswer(turn: Turn, text: string): Promise<void> {
	const { tree } = chat.value;
	const parts = [...turn.answer.parts.filter((p) => p.kind !== "message"), { kind: "message" as const, text, done: true }];
	const previous = continues(tree, turn.parent);
	const response = {
		...(previous && { previous_response_id: previous }),
		...(turn.systemPrompt !== undefined && { system_prompt: turn.systemPrompt }),
		model: turn.model,
		input: inputOf(turn.question),
		output: outputOf(parts),
	};
	const stored = await post<Conversation>("/api/v1/conversations", { responses: [response] });
	const id = stored.last_response_id;
	const answer: Answer = { ...newAnswer(), phase: "done", parts, responseId: id, instance: turn.answer.instance, status: "completed" };
	show(withTurn(chat.value.tree, { ...turn, id, answer }));
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
	live?.stop();
}

/** Looks no more at the answer, which goes on if it is stored. */
function leave(): void {
	live?.leave();
	live = null;
}

async function ask(question: Question, parent: string, { model = chat.value.model, prefill }: Again = {}): Promise<Answer> {
	const turn: Turn = { id: "turn-" + ++lastTurn, parent, question, answer: newAnswer(randomId()), model };
	const body = { ...requestOf(question, parent, turn), ...(prefill && { prefill }) };
	change({ tree: withTurn(chat.value.tree, turn) });
	keepAsked(question);
	const answer = await makeAnswer(turn, options.value.isStored, (l) => l.ask(body));
	if (answer.phase !== "failed" || answer.responseId) keepAsked(null);
	if (answer.phase !== "stopped") void addFigures(turn.id, answer.requestId);
	const { opened } = chat.value;
	const isFirst = parent === "" && options.value.isStored && options.value.hasTitles && answer.phase === "done" && answer.responseId !== "";
	if (isFirst) void giveTitle({ ...turn, answer }, () => !chat.value.running && chat.value.opened === opened).catch(() => undefined); // then it keeps its own
	return answer;
}

/** Shows the answer of a turn as it is made, until it has ended or another conversation is shown. */
async function makeAnswer({ id, answer }: Turn, isStored: boolean, make: (l: Live) => Promise<Answer>): Promise<Answer> {
	const mine = new Live(answer, isStored, (a) => {
		approveKnown(a);
		if (live !== mine) return;
		const isKnown = chat.value.tree.turns.get(id)?.answer.responseId !== "";
		const tree = withAnswer(chat.value.tree, id, () => a);
		if (isKnown || !a.responseId || !isStored) return change({ tree });
		keepAsked(null); // it is on the server
		show(tree);
	});
	live = mine;
	change({ running: id });
	const made = await make(mine);
	if (live !== mine) return made;
	live = null;
	change({ running: "", answered: chat.value.answered + 1 });
	show(chat.value.tree);
	const said = made.parts.map((p) => (p.kind === "message" ? p.text : "")).join(" ").trim();
	if (made.phase === "done") announce(texts.chat.answerIsComplete(said.slice(0, 2000)));
	else if (made.phase === "stopped") announce(texts.chat.theAnswerWasStopped);
	else announce(texts.chat.answerFailed(made.failures.at(-1)?.message ?? ""));
	return made;
}

/** Shows a conversation. Its id is that of its first response: a branch of the first question is a conversation of its own. */
function show(tree: Tree): void {
	change({ tree, conversation: path(tree).find((t) => t.answer.responseId)?.answer.responseId ?? "" });
}

function requestOf(question: Question, parent: string, turn: Turn): Record<string, unknown> {
	const { tree } = chat.value;
	const o = options.value;
	const body: Record<string, unknown> = { model: turn.model, ...fieldsOf(o), stream: true };
	body["input"] = question.images.length === 0 && !question.recordings?.length ? question.text : inputOf(question);
	const previous = continues(tree, parent);
	if (previous) body["previous_response_id"] = previous;
	if (o.systemPrompt !== systemPromptOf(tree, parent)) {
		body["system_prompt"] = o.systemPrompt;
		turn.systemPrompt = o.systemPrompt; // the turn isn't shown with it
	}
	return body;
}

/** The code of the error of an answer that can't be continued, because the server doesn't have it for this token. */
export const lostConversation = "previous_response_not_found";

export function whyLost(): string {
	return session.value.settings?.authentication
		? texts.chat.conversationContinuedDeletedBelongs
		: texts.chat.conversationContinuedDeleted;
}

const between = 250; // milliseconds

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
