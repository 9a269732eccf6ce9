// An answer that is being made. The server makes it whether or not the page is there, so that a reload or another tab joins it again; only
// one that isn't stored ends with its connection.

import { ApiError, call, get, isAbort, messageOf, segment, send } from "../core/http";
import { readEvents } from "../core/sse";
import { cut, failed, isRunning, newAnswer, step } from "./answer";
import type { Answer } from "./answer";
import { answerOf } from "./tree";
import type { StoredResponse } from "./tree";
import { texts } from "../texts";

const shortestWait = 300; // milliseconds
const longestWait = 5_000;
const giveUpAfter = 120_000; // milliseconds without the server
const startsWithin = 1_500; // milliseconds

export class Live {
	answer: Answer;
	readonly #show: (a: Answer) => void;
	readonly #isStored: boolean;
	readonly #ending = new AbortController();
	#isStopped = false;
	#isDue = false;
	#cancelling: Promise<void> | null = null;

	/** show is called with the answer as it grows: at once when it begins, and then once for each frame at most. */
	constructor(answer: Answer, isStored: boolean, show: (a: Answer) => void) {
		this.answer = answer;
		this.#isStored = isStored;
		this.#show = show;
	}

	/** Asks, and resolves with the answer when there is no more of it to come. */
	async ask(body: Record<string, unknown>): Promise<Answer> {
		const { signal } = this.#ending;
		const headers = { "X-Request-Id": this.answer.requestId };
		return this.#until(async () => this.#read(await send("POST", "/api/v1/chat", { body, headers, signal })));
	}

	/** Joins an answer that was begun before. */
	join(): Promise<Answer> {
		return this.#until(() => Promise.resolve());
	}

	/** Has the server stop. What there is of the answer stays. */
	stop(): void {
		this.#isStopped = true;
		if (!this.#isStored) this.#ending.abort();
		else if (this.answer.responseId) this.#cancelling ??= this.#cancel();
		else setTimeout(() => !this.answer.responseId && this.#ending.abort(), startsWithin);
	}

	/** Looks no more at the answer, which goes on if it is stored. */
	leave(): void {
		this.#ending.abort();
	}

	async #until(begin: () => Promise<void>): Promise<Answer> {
		try {
			await begin();
			if (isRunning(this.answer) && this.answer.responseId && this.#isStored) await this.#rejoin();
			this.#change(cut(this.answer, this.#isStopped));
		} catch (error) {
			const isEnded = this.#ending.signal.aborted && (isAbort(error) || error === this.#ending.signal.reason);
			const ended = cut(this.answer, true);
			this.#change(isEnded ? { ...ended, status: ended.responseId ? ended.status : "discarded" } : failed(this.answer, failureOf(error)));
		}
		await this.#cancelling;
		this.#publish();
		return this.answer;
	}

	async #read(response: Response): Promise<void> {
		try {
			for await (const event of readEvents(response)) {
				const isKnown = this.answer.responseId !== "";
				this.#change(step(this.answer, event));
				if (this.#isStopped && !isKnown && this.answer.responseId) this.#cancelling ??= this.#cancel();
			}
		} catch (error) {
			if (!this.#isStored || !this.answer.responseId || this.#ending.signal.aborted) throw error; // otherwise it is joined again
		}
	}

	/** Follows an answer whose stream isn't here, or is lost, to its end. */
	async #rejoin(): Promise<void> {
		const id = this.answer.responseId;
		const path = "/api/v1/responses/" + segment(id);
		let since = Date.now();
		for (let wait = shortestWait; isRunning(this.answer) && Date.now() - since < giveUpAfter; wait = Math.min(2 * wait, longestWait)) {
			try {
				const response = await send("GET", path, { query: { stream: true }, signal: this.#ending.signal });
				since = Date.now();
				wait = shortestWait;
				this.answer = { ...newAnswer(this.answer.requestId), responseId: id };
				await this.#read(response);
			} catch (error) {
				if (this.#ending.signal.aborted || !(error instanceof ApiError)) throw error;
				if (error.status === 400 || error.status === 404) {
					const stored = await storedResponse(id);
					if (stored?.status !== "in_progress") return this.#change(stored ? answerOf(stored) : failed(this.answer, { message: texts.answer.theAnswerWasDeleted }));
					since = Date.now();
				} else if (error.status !== 0) throw error;
			}
			if (isRunning(this.answer)) await new Promise((resolve) => setTimeout(resolve, wait));
		}
	}

	async #cancel(): Promise<void> {
		const id = this.answer.responseId;
		const stored = await call<StoredResponse>("POST", `/api/v1/responses/${segment(id)}/cancel`).catch(() => null);
		if (stored) this.#change({ ...cut(this.answer, true), ...answerOf(stored), requestId: this.answer.requestId });
		else this.#change({ ...cut(this.answer, true), phase: "stopped", responseId: "", status: "discarded" });
		this.#ending.abort();
	}

	#change(a: Answer): void {
		const begins = !hasBegun(this.answer) && hasBegun(a);
		this.answer = a;
		if (begins) return this.#publish();
		if (this.#isDue) return;
		this.#isDue = true;
		const publish = () => this.#isDue && this.#publish();
		if (document.visibilityState === "visible") requestAnimationFrame(publish);
		setTimeout(publish, 250); // pages that can't be seen have no frames
	}

	#publish(): void {
		this.#isDue = false;
		this.#show(this.answer);
	}
}

/** Reports whether there is something to see of an answer. */
const hasBegun = (a: Answer): boolean => a.parts.some((p) => p.kind === "call" || p.text !== "");

/** Returns a response as it is stored, also one in progress; null: it isn't. */
async function storedResponse(id: string): Promise<StoredResponse | null> {
	try {
		const { responses } = await get<{ responses?: StoredResponse[] }>("/api/v1/conversations/" + segment(id), { query: { branches: true } });
		return responses?.find((r) => r.response_id === id) ?? null;
	} catch (error) {
		if (error instanceof ApiError && error.status === 404) return null;
		throw error;
	}
}

function failureOf(error: unknown) {
	if (!(error instanceof ApiError))
		return { message: error instanceof TypeError ? texts.answer.connectionLostBeforeAnswer : messageOf(error) };
	const { message, code, param, status } = error;
	return { message, code, param, status };
}
