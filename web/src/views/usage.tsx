import { useMemo } from "preact/hooks";
import { Plot, timeText } from "../activity/plot";
import { amount, plotted, sums, type Metric, type UsageRow } from "../activity/usagedata";
import { formatNumber } from "../core/format";
import { useResource } from "../core/resource";
import { href, setQuery, useRoute } from "../core/router";
import { useCan } from "../core/session";
import type { Token } from "../core/types";
import { Segments, Select } from "../ui/Field";
import { Empty, Failure, Loading } from "../ui/states";
import { Table } from "../ui/Table";
import { Section, View } from "../ui/View";

const ranges = [
	{ value: "24h", text: "24 hours", hours: 24 },
	{ value: "48h", text: "48 hours", hours: 48 },
	{ value: "7d", text: "7 days", hours: 0 },
	{ value: "30d", text: "30 days", hours: 0 },
	{ value: "90d", text: "90 days", hours: 0 },
] as const;

const metrics: readonly { value: Metric; text: string }[] = [
	{ value: "tokens", text: "Tokens" },
	{ value: "input_tokens", text: "Tokens in" },
	{ value: "output_tokens", text: "Tokens out" },
	{ value: "requests", text: "Requests" },
];

type Kind = "model" | "token";

interface Row {
	day?: string;
	hour?: string;
	owner?: string;
	model: string;
	requests: number;
	input_tokens: number;
	output_tokens: number;
}

export function Usage() {
	const { query } = useRoute();
	const isAdmin = useCan("admin");
	const range = ranges.find((r) => r.value === query.get("range")) ?? ranges[3];
	const byHour = range.hours > 0;
	const metric = metrics.find((m) => m.value === query.get("of"))?.value ?? "tokens";
	const kind: Kind = isAdmin && !byHour && query.get("by") === "token" ? "token" : "model";
	const token = byHour ? "" : (query.get("token") ?? "");
	const usage = useResource<{ usage: Row[] }>("/api/v1/usage", {
		query: byHour ? { by: "hour", since: range.value } : { since: range.value },
		every: 30_000,
	});
	const tokens = useResource<{ tokens: Token[] }>(isAdmin ? "/api/v1/tokens" : null);
	const names = useMemo(() => new Map((tokens.data?.tokens ?? []).map((t) => [t.id, t.name || t.id])), [tokens.data]);
	const rows = useMemo(() => rowsOf(usage.data?.usage ?? [], kind, token, names), [usage.data, kind, token, names]);
	const data = useMemo(() => {
		const now = Date.now() / 1000;
		const from = byHour ? now - (range.hours - 1) * 3600 : now - (Number.parseInt(range.value) - 1) * 86_400;
		return plotted(rows, metric, from, now, byHour);
	}, [rows, metric, range]);

	return (
		<View
			title="Usage"
			lead={isAdmin ? "What everybody has used. Refused requests don't count." : "What you have used. Refused requests don't count."}
		>
			<div class="filters">
				<Segments label="Range" value={range.value} onChange={(r) => setQuery({ range: r })} choices={ranges} />
				<Segments label="What is counted" value={metric} onChange={(m) => setQuery({ of: m })} choices={metrics} />
				{isAdmin && !byHour && (
					<>
						<Segments
							label="By"
							value={kind}
							onChange={(k) => setQuery({ by: k })}
							choices={[
								{ value: "model", text: "By model" },
								{ value: "token", text: "By token" },
							]}
						/>
						<Select
							label="Token"
							hideLabel
							value={token}
							onChange={(t) => setQuery({ token: t })}
							choices={tokenChoices(names, usage.data?.usage ?? [], token)}
						/>
					</>
				)}
			</div>
			{usage.error && <Failure error={usage.error} retry={usage.reload} />}
			{!usage.data ? (
				usage.isLoading && <Loading />
			) : rows.length === 0 ? (
				<Empty icon="usage" title={`Nothing was used in the last ${range.text}`}>
					<p>
						<a href={href("chat")}>Ask a model something</a>; it is counted once the model has begun to answer.
					</p>
				</Empty>
			) : (
				<>
					<Plot
						data={data}
						label={summary(rows, metric, range.text)}
						unit={metrics.find((m) => m.value === metric)?.text.toLowerCase() ?? ""}
						byHour={byHour}
					/>
					<Section title={kind === "model" ? "By model" : "By token"}>
						<Sums rows={sums(rows, (r) => r.name)} title={kind === "model" ? "Model" : "Token"} />
					</Section>
					<Section title={byHour ? "By hour" : "By day"}>
						<Sums rows={byTime(rows)} title={byHour ? "Hour" : "Day, UTC"} nameOf={(r) => timeText(Date.parse(r.time) / 1000, byHour)} />
					</Section>
				</>
			)}
		</View>
	);
}

const ownerName = (owner: string, names: ReadonlyMap<string, string>): string => (owner === "" ? "without a token" : (names.get(owner) ?? owner));

function rowsOf(usage: Row[], kind: Kind, token: string, names: ReadonlyMap<string, string>): UsageRow[] {
	return usage
		.filter((r) => token === "" || r.owner === token)
		.map((r) => ({
			time: r.hour ?? `${r.day}T00:00:00Z`,
			name: kind === "model" ? r.model : ownerName(r.owner ?? "", names),
			requests: r.requests,
			input_tokens: r.input_tokens,
			output_tokens: r.output_tokens,
		}));
}

function tokenChoices(names: ReadonlyMap<string, string>, usage: Row[], chosen: string) {
	const owners = new Set([...usage.map((r) => r.owner ?? ""), chosen].filter(Boolean));
	return [{ value: "", text: "All tokens" }, ...[...owners].map((o) => ({ value: o, text: names.get(o) ?? o }))];
}

function byTime(rows: UsageRow[]): UsageRow[] {
	return sums(rows, (r) => r.time).sort((a, b) => (a.time < b.time ? 1 : -1));
}

function summary(rows: UsageRow[], metric: Metric, range: string): string {
	const total = rows.reduce((sum, r) => sum + amount(r, metric), 0);
	const what = metrics.find((m) => m.value === metric)?.text ?? "";
	return `${what} of the last ${range}: ${formatNumber(total)} in all. The tables below have the figures.`;
}

function Sums({ rows, title, nameOf = (r) => r.name }: { rows: UsageRow[]; title: string; nameOf?: (row: UsageRow) => string }) {
	return (
		<Table
			label={title}
			rows={rows}
			rowKey={(r) => r.name}
			columns={[
				{ title, name: true, render: nameOf },
				{ title: "Requests", numeric: true, render: (r) => formatNumber(r.requests) },
				{ title: "Tokens in", numeric: true, minor: "phone", render: (r) => formatNumber(r.input_tokens) },
				{ title: "Tokens out", numeric: true, minor: "phone", render: (r) => formatNumber(r.output_tokens) },
				{ title: "Tokens", numeric: true, render: (r) => formatNumber(r.input_tokens + r.output_tokens) },
			]}
		/>
	);
}
