// The newest records of the server's log, as they come.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../core/events";
import { useStore } from "../core/store";
import { session } from "../core/session";
import type { LogRecord } from "../core/types";

export const mostRecords = 2000;
const between = 100; // milliseconds: an engine that loads prints hundreds of lines at once

export interface LogFilter {
	level: string;
	engine: boolean;
	model: string;
	instance: string;
	request: string;
}

export interface LogTail {
	records: readonly LogRecord[];
	/** How many records have been dropped at the beginning. */
	dropped: number;
	state: "connecting" | "live" | "broken" | "paused";
}

/** Follows the log. While it is paused, nothing is fetched; then it goes on where it was. */
export function useLogTail(filter: LogFilter, isPaused: boolean): LogTail {
	const [tail, setTail] = useState<{ records: readonly LogRecord[]; dropped: number }>({ records: [], dropped: 0 });
	const [state, setState] = useState<LogTail["state"]>("connecting");
	const { generation } = useStore(session);
	const key = JSON.stringify(filter);
	const place = useRef({ key: "", id: "" });

	useEffect(() => {
		if (isPaused) return setState("paused");
		if (place.current.key !== key) {
			place.current = { key, id: "" };
			setTail({ records: [], dropped: 0 });
		}
		let pending: LogRecord[] = [];
		let timer: ReturnType<typeof setTimeout> | undefined;
		const flush = () => {
			timer = undefined;
			const more = pending;
			pending = [];
			setTail((t) => appended(t, more));
		};
		const stop = follow(
			queryOf(filter),
			(event) => {
				pending.push(event as unknown as LogRecord);
				if (pending.length > mostRecords) pending = pending.slice(-mostRecords);
				timer ??= setTimeout(flush, between);
			},
			{ path: "/api/v1/logs", lastId: place.current.id, onId: (id) => (place.current.id = id), onState: setState },
		);
		return () => {
			stop();
			clearTimeout(timer);
			if (pending.length > 0) flush();
		};
	}, [key, isPaused, generation]);
	return { ...tail, state };
}

function queryOf(f: LogFilter): Record<string, string> {
	const query: Record<string, string> = { follow: "true", limit: "500", level: f.level };
	if (f.engine) query["engine"] = "true";
	for (const name of ["model", "instance", "request"] as const) if (f[name]) query[name] = f[name];
	return query;
}

function appended(tail: { records: readonly LogRecord[]; dropped: number }, more: LogRecord[]) {
	const all = [...tail.records, ...more];
	const tooMany = Math.max(0, all.length - mostRecords);
	return { records: tooMany ? all.slice(tooMany) : all, dropped: tail.dropped + tooMany };
}

/** Returns a record in a line: what it says, and its fields. */
export function lineOf(record: LogRecord): { text: string; fields: string } {
	const all = { ...(record.fields as Record<string, unknown>) };
	let text = record.message;
	if (text === "engine" && typeof all["line"] === "string") {
		text = all["line"]; // its output is what it says
		delete all["line"];
		delete all["part"];
	}
	const fields = Object.entries(all).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
	return { text, fields: fields.join(" ") };
}

export function contains(record: LogRecord, text: string): boolean {
	if (text === "") return true;
	const wanted = text.toLowerCase();
	const { text: said, fields } = lineOf(record);
	return `${record.level} ${record.logger} ${said} ${fields}`.toLowerCase().includes(wanted);
}
