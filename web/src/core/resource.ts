import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { missed, useEvents } from "./events";
import { get, isAbort, type Options } from "./http";
import { session } from "./session";
import { useStore } from "./store";

export interface Resource<T> {
	/** The newest answer; it stays while another is fetched. */
	data: T | null;
	error: Error | null;
	/** Nothing has been answered yet. */
	isLoading: boolean;
	/** Fetches it anew. */
	reload: () => void;
	/** Replaces the data, until it is fetched the next time. */
	set: (data: T) => void;
}

export interface ResourceOptions {
	query?: Options["query"];
	/** Types of events after which it is fetched anew, such as "download.*". */
	events?: readonly string[];
	accept?: Options["accept"];
	/** Milliseconds after which it is fetched anew without an event; absent: never. */
	every?: number;
}

const least = 250; // milliseconds between two fetches that events cause

/** Fetches a path of the API, and again after events and after a break. A path of null isn't fetched. */
export function useResource<T>(path: string | null, { query, events = [], accept, every }: ResourceOptions = {}): Resource<T> {
	const [state, setState] = useState<{ key: string; data: T | null; error: Error | null }>({ key: "", data: null, error: null });
	const key = path === null ? "" : path + "?" + JSON.stringify(query ?? {});
	const { generation } = useStore(session);
	const missedCount = useStore(missed);
	const [count, setCount] = useState(0);
	const reload = useCallback(() => setCount((n) => n + 1), []);
	const timer = useRef<ReturnType<typeof setTimeout> | null>(null);

	useEffect(() => {
		if (path === null) return;
		const ending = new AbortController();
		get<T>(path, { query, accept, signal: ending.signal }).then(
			(data) => !ending.signal.aborted && setState({ key, data, error: null }),
			(error: Error) => !ending.signal.aborted && !isAbort(error) && setState((s) => ({ key, data: s.key === key ? s.data : null, error })),
		);
		return () => ending.abort();
	}, [key, generation, missedCount, count]);

	useEvents(events, () => {
		timer.current ??= setTimeout(() => {
			timer.current = null;
			reload();
		}, least);
	});
	useEffect(() => () => void (timer.current && clearTimeout(timer.current)), []);
	useEffect(() => {
		if (!every || path === null) return;
		const interval = setInterval(() => document.visibilityState === "visible" && reload(), every);
		return () => clearInterval(interval);
	}, [every, path === null]);

	const current = state.key === key;
	return {
		data: current ? state.data : null,
		error: current ? state.error : null,
		isLoading: path !== null && !current,
		reload,
		set: (data) => setState({ key, data, error: null }),
	};
}
