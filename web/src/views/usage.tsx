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
import { texts } from "../texts";

const ranges = [
	{ value: "24h", text: texts.usage.last24Hours, hours: 24 },
	{ value: "48h", text: texts.usage.last48Hours, hours: 48 },
	{ value: "7d", text: texts.usage.last7Days, hours: 0 },
	{ value: "30d", text: texts.usage.last30Days, hours: 0 },
	{ value: "90d", text: texts.usage.last90Days, hours: 0 },
] as const;

const metrics: readonly { value: Metric; text: string }[] = [
	{ value: "tokens", text: texts.common.tokens },
	{ value: "input_tokens", text: texts.common.tokensIn },
	{ value: "output_tokens", text: texts.common.tokensOut },
	{ value: "requests", text: texts.common.requests },
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
			title={texts.common.usage}
			lead={isAdmin ? texts.usage.everybodyUsedRefusedRequests : texts.usage.youUsedRefusedRequests}
		>
			<div class="filters">
				<Segments label={texts.usage.range} value={range.value} onChange={(r) => setQuery({ range: r })} choices={ranges} />
				<Segments label={texts.usage.whatIsCounted} value={metric} onChange={(m) => setQuery({ of: m })} choices={metrics} />
				{isAdmin && !byHour && (
					<>
						<Segments
							label={texts.usage.by}
							value={kind}
							onChange={(k) => setQuery({ by: k })}
							choices={[
								{ value: "model", text: texts.common.byModel },
								{ value: "token", text: texts.usage.byToken },
							]}
						/>
						<Select
							label={texts.common.token}
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
				<Empty icon="usage" title={texts.usage.nothingUsedLast(range.text)}>
					<p>{texts.usage.countedOnceModelBegun(<a href={href("chat")}>{texts.common.askAModelSomething}</a>)}</p>
				</Empty>
			) : (
				<>
					<Plot
						data={data}
						label={summary(rows, metric, range.text)}
						unit={metrics.find((m) => m.value === metric)?.text.toLowerCase() ?? ""}
						byHour={byHour}
					/>
					<Section title={kind === "model" ? texts.common.byModel : texts.usage.byToken}>
						<Sums rows={sums(rows, (r) => r.name)} title={kind === "model" ? texts.common.model : texts.common.token} />
					</Section>
					<Section title={byHour ? texts.usage.byHour : texts.usage.byDay}>
						<Sums rows={byTime(rows)} title={byHour ? texts.usage.hour : texts.usage.dayUtc} nameOf={(r) => timeText(Date.parse(r.time) / 1000, byHour)} />
					</Section>
				</>
			)}
		</View>
	);
}

const ownerName = (owner: string, names: ReadonlyMap<string, string>): string => (owner === "" ? texts.usage.withoutToken : (names.get(owner) ?? owner));

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
	return [{ value: "", text: texts.usage.allTokens }, ...[...owners].map((o) => ({ value: o, text: names.get(o) ?? o }))];
}

function byTime(rows: UsageRow[]): UsageRow[] {
	return sums(rows, (r) => r.time).sort((a, b) => (a.time < b.time ? 1 : -1));
}

function summary(rows: UsageRow[], metric: Metric, range: string): string {
	const total = rows.reduce((sum, r) => sum + amount(r, metric), 0);
	const what = metrics.find((m) => m.value === metric)?.text ?? "";
	return texts.usage.summary(what, range, formatNumber(total));
}

function Sums({ rows, title, nameOf = (r) => r.name }: { rows: UsageRow[]; title: string; nameOf?: (row: UsageRow) => string }) {
	return (
		<Table
			label={title}
			rows={rows}
			rowKey={(r) => r.name}
			columns={[
				{ title, name: true, render: nameOf },
				{ title: texts.common.requests, numeric: true, render: (r) => formatNumber(r.requests) },
				{ title: texts.common.tokensIn, numeric: true, minor: "phone", render: (r) => formatNumber(r.input_tokens) },
				{ title: texts.common.tokensOut, numeric: true, minor: "phone", render: (r) => formatNumber(r.output_tokens) },
				{ title: texts.common.tokens, numeric: true, render: (r) => formatNumber(r.input_tokens + r.output_tokens) },
			]}
		/>
	);
}
