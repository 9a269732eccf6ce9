import { useEffect, useRef } from "preact/hooks";
import { ApiError, isAbort, send } from "./http";
import { can, session } from "./session";
import { readEvents } from "./sse";
import { Store } from "./store";

/** An event of GET /api/v1/events. What else it has depends on its type. */
export interface LiveEvent {
	type: string;
	time?: string;
	[field: string]: unknown;
}

/** Whether the page hears of changes at once. */
export const live = new Store<"connecting" | "live" | "broken">("connecting");

/** Changes when events were missed, so that what they would have changed has to be fetched anew. */
export const missed = new Store(0);

const followers = new Set<(event: LiveEvent) => void>();

/** The page's own stream, for all views. A view that needs other events, such as records of the log, opens one of its own. */
export function startEvents(): void {
	let stop = () => undefined as void;
	let resume = "";
	const start = () => {
		stop();
		stop = follow({}, tell, { lastId: resume, onId: (id) => (resume = id), onState: (state) => live.set(state) });
	};
	const isWanted = () => document.visibilityState === "visible" && session.value.settings !== null && can("models.read");
	let wanted = false;
	let generation = session.value.generation;
	const check = () => {
		if (generation !== session.value.generation) {
			generation = session.value.generation;
			resume = "";
			wanted = false;
			stop();
		}
		if (isWanted() === wanted) return;
		wanted = !wanted;
		if (wanted) start();
		else stop(); // a browser has only six connections for all tabs of a site
	};
	session.follow(check);
	document.addEventListener("visibilitychange", check);
	check();
}

function tell(event: LiveEvent): void {
	if ((event.type === "events.start" && event["resumed"] !== true) || event.type === "events.missed") missed.set(missed.value + 1);
	for (const follower of [...followers]) follower(event);
}

export interface Following {
	lastId?: string;
	onId?: (id: string) => void;
	onState?: (state: "connecting" | "live" | "broken") => void;
	/** The path of the stream. */
	path?: string;
}

const shortestWait = 500;
const longestWait = 15_000;

/** Follows a stream of events until the returned function is called. After a break it goes on where it was. */
export function follow(query: Record<string, string>, on: (event: LiveEvent) => void, options: Following = {}): () => void {
	const ending = new AbortController();
	let id = options.lastId ?? "";
	let wait = shortestWait;
	const run = async () => {
		while (!ending.signal.aborted) {
			options.onState?.("connecting");
			try {
				const response = await send("GET", options.path ?? "/api/v1/events", {
					query,
					headers: { Accept: "text/event-stream", ...(id ? { "Last-Event-ID": id } : {}) },
					signal: ending.signal,
				});
				options.onState?.("live");
				for await (const event of readEvents(response)) {
					wait = shortestWait;
					if (event.id) options.onId?.((id = event.id));
					on(JSON.parse(event.data) as LiveEvent);
				}
			} catch (error) {
				if (isAbort(error) || ending.signal.aborted) return;
				if (error instanceof ApiError && error.status === 403) {
					options.onState?.("broken");
					return;
				}
			}
			if (ending.signal.aborted) return;
			options.onState?.("broken");
			await pause(wait + Math.random() * 250, ending.signal);
			wait = Math.min(wait * 2, longestWait);
		}
	};
	void run();
	return () => ending.abort();
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, milliseconds);
		signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
	});
}

/** Reports whether a type is one of some patterns, such as "download.*". */
export const matches = (type: string, patterns: readonly string[]): boolean =>
	patterns.some((p) => (p.endsWith("*") ? type.startsWith(p.slice(0, -1)) : p === type));

/** Calls on with each event of the types, as long as the component is mounted. */
export function useEvents(types: readonly string[], on: (event: LiveEvent) => void): void {
	const latest = useRef(on);
	latest.current = on;
	const key = types.join(",");
	useEffect(() => {
		const patterns = key.split(",");
		const follower = (event: LiveEvent) => {
			if (matches(event.type, patterns)) latest.current(event);
		};
		followers.add(follower);
		return () => void followers.delete(follower);
	}, [key]);
}
