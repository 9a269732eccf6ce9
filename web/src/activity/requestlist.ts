// The newest requests, kept up to date by events.

import { useEffect, useRef, useState } from "preact/hooks";
import { useEvents } from "../core/events";
import { useResource } from "../core/resource";
import type { components } from "../schema";

export type Request = components["schemas"]["Request"] & { inspected?: boolean };

const most = 500; // as many as the server keeps
const between = 250; // milliseconds: a busy server has hundreds of requests a second

export interface RequestList {
	all: Request[]; // the newest first
	error: Error | null;
	isLoading: boolean;
	reload: () => void;
}

export function useRequests(): RequestList {
	const { data, error, isLoading, reload } = useResource<{ requests: Request[] }>("/api/v1/requests", { query: { limit: most } });
	const known = useRef(new Map<string, Request>());
	const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
	const [all, setAll] = useState<Request[]>([]);
	const show = () => {
		timer.current = undefined;
		known.current = newest(known.current);
		setAll([...known.current.values()]);
	};
	useEffect(() => {
		if (!data) return;
		known.current = new Map(data.requests.map((r) => [keyOf(r), r]));
		show();
	}, [data]);
	useEvents(["request.*"], (event) => {
		const request = event["request"] as Request | undefined;
		if (!request?.id) return;
		known.current.set(keyOf(request), request);
		if (known.current.size > 2 * most) known.current = newest(known.current);
		timer.current ??= setTimeout(show, between);
	});
	useEffect(() => () => clearTimeout(timer.current), []);
	return { all, error, isLoading, reload };
}

/** Names a request: several may have the same id, which their clients can choose. */
export const keyOf = (r: Request): string => r.id + " " + r.arrived_at;

/** Returns the newest requests, the newest first. */
export function newest(known: ReadonlyMap<string, Request>): Map<string, Request> {
	const sorted = [...known.entries()].sort(([, a], [, b]) => (a.arrived_at < b.arrived_at ? 1 : a.arrived_at > b.arrived_at ? -1 : 0));
	return new Map(sorted.slice(0, most));
}

export const isRunning = (r: Request): boolean => r.duration_seconds === undefined;

export const hasFailed = (r: Request): boolean => !isRunning(r) && r.outcome !== undefined && r.outcome !== "ok" && r.outcome !== "cancelled";

/** Returns the speed in tokens a second; null: unknown. */
export const speed = (r: Request): number | null => (r.time_per_output_token_seconds ? 1 / r.time_per_output_token_seconds : null);
