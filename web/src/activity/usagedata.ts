// Usage as it is plotted: a row for each span of time and name.

import { texts } from "../texts";

export interface UsageRow {
	/** A day or an hour, in UTC. */
	time: string;
	name: string;
	requests: number;
	input_tokens: number;
	output_tokens: number;
}

export type Metric = "tokens" | "requests" | "input_tokens" | "output_tokens";

export const amount = (row: Omit<UsageRow, "time" | "name">, metric: Metric): number =>
	metric === "tokens" ? row.input_tokens + row.output_tokens : row[metric];

export interface Series {
	name: string;
	values: number[]; // one for each time
	total: number;
}

export interface Plotted {
	times: number[]; // seconds since 1970, without gaps
	series: Series[]; // the largest first
}

/** How many names have a colour of their own; the others are shown as one. */
export const mostSeries = 5;

const hour = 3600;
const day = 24 * hour;

/** Returns the sums of rows for each time between two, and each name. */
export function plotted(rows: readonly UsageRow[], metric: Metric, from: number, to: number, byHour: boolean): Plotted {
	const step = byHour ? hour : day;
	const times: number[] = [];
	for (let t = Math.floor(from / step) * step; t <= to; t += step) times.push(t);
	const index = new Map(times.map((t, i) => [t, i]));
	const series = new Map<string, Series>();
	for (const row of rows) {
		const at = index.get(Math.floor(Date.parse(row.time) / 1000 / step) * step);
		if (at === undefined) continue;
		let s = series.get(row.name);
		if (!s) series.set(row.name, (s = { name: row.name, values: times.map(() => 0), total: 0 }));
		s.values[at] = (s.values[at] ?? 0) + amount(row, metric);
		s.total += amount(row, metric);
	}
	const sorted = [...series.values()].sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
	if (sorted.length <= mostSeries + 1) return { times, series: sorted };
	const rest = sorted.slice(mostSeries);
	const together: Series = {
		name: texts.usage.others(rest.length),
		values: times.map((_, i) => rest.reduce((sum, s) => sum + (s.values[i] ?? 0), 0)),
		total: rest.reduce((sum, s) => sum + s.total, 0),
	};
	return { times, series: [...sorted.slice(0, mostSeries), together] };
}

/** Returns the sums for each name, the largest first. */
export function sums(rows: readonly UsageRow[], of: (row: UsageRow) => string): UsageRow[] {
	const all = new Map<string, UsageRow>();
	for (const row of rows) {
		const name = of(row);
		const sum = all.get(name) ?? { time: row.time, name, requests: 0, input_tokens: 0, output_tokens: 0 };
		sum.requests += row.requests;
		sum.input_tokens += row.input_tokens;
		sum.output_tokens += row.output_tokens;
		all.set(name, sum);
	}
	return [...all.values()].sort((a, b) => amount(b, "tokens") - amount(a, "tokens") || b.requests - a.requests);
}
