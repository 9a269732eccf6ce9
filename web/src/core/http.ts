import { requireToken, session } from "./session";
import { texts } from "../texts";

/** An error that the server answered with, or that kept a request from reaching it. */
export class ApiError extends Error {
	readonly status: number; // 0: the server wasn't reached
	readonly code: string;
	readonly param: string;

	constructor(status: number, message: string, code = "", param = "") {
		super(message);
		this.name = "ApiError";
		this.status = status;
		this.code = code;
		this.param = param;
	}
}

export interface Options {
	query?: Record<string, string | number | boolean | undefined | null>;
	body?: unknown;
	headers?: Record<string, string>;
	signal?: AbortSignal;
	/** A token in place of the session's, for trying one out. */
	token?: string | null;
	/** Statuses of errors that are answers, too. */
	accept?: readonly number[];
}

/**
 * Sends a request, and returns the response if it is a success. If the server wants a token, it is asked for, and the request is
 * repeated.
 */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
	for (;;) {
		const token = options.token !== undefined ? options.token : session.value.token;
		const response = await attempt(method, path, options, token);
		if (response.ok || options.accept?.includes(response.status)) return response;
		const error = await errorOf(response);
		const asks = response.status === 401 && options.token === undefined && session.value.settings?.authentication !== false;
		if (!asks) throw error;
		if (session.value.token === token) await abortable(requireToken(token ? error.message : ""), options.signal);
	}
}

/** Sends a request, and returns the JSON of the answer. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
	const response = await send(method, path, options);
	return (await response.json()) as T;
}

export const get = <T>(path: string, options?: Options) => call<T>("GET", path, options);
export const post = <T>(path: string, body: unknown = {}, options?: Options) => call<T>("POST", path, { ...options, body });

/** A name as a segment of a path. Slashes are escaped as well. */
export const segment = encodeURIComponent;

async function attempt(method: string, path: string, { query, body, headers, signal }: Options, token: string | null): Promise<Response> {
	const url = new URL(path, location.origin);
	for (const [name, value] of Object.entries(query ?? {})) {
		if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
	}
	const init: RequestInit = { method, headers: { ...headers }, signal: signal ?? null, cache: "no-store", credentials: "same-origin" };
	const sent = init.headers as Record<string, string>;
	if (token) sent["Authorization"] = texts.errors.bearer + token;
	if (body !== undefined) {
		sent["Content-Type"] = "application/json";
		init.body = JSON.stringify(body);
	}
	try {
		return await fetch(url, init);
	} catch (cause) {
		if (signal?.aborted) throw cause;
		throw new ApiError(0, texts.errors.serverReachedCheckRunning, "unreachable");
	}
}

async function errorOf(response: Response): Promise<ApiError> {
	const text = await response.text().catch(() => "");
	try {
		const { error } = JSON.parse(text) as { error?: { message?: string; code?: string; param?: string } };
		if (error?.message) return new ApiError(response.status, error.message, error.code ?? "", error.param ?? "");
	} catch {
		// not JSON: something between the page and the server has answered
	}
	return new ApiError(response.status, texts.errors.serverAnswered(`${response.status} ${response.statusText}`.trim()));
}

function abortable(promise: Promise<void>, signal?: AbortSignal): Promise<void> {
	if (!signal) return promise;
	return new Promise((resolve, reject) => {
		const abort = () => reject(signal.reason);
		if (signal.aborted) return abort();
		signal.addEventListener("abort", abort, { once: true });
		void promise.then(() => {
			signal.removeEventListener("abort", abort);
			resolve();
		});
	});
}

/** What to show of anything that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Reports whether an error only says that the request was no longer wanted. */
export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";
