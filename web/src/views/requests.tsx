import { useState } from "preact/hooks";
import { RequestDetails } from "../activity/requestdetails";
import { hasFailed, isRunning, keyOf, speed, useRequests, type Request } from "../activity/requestlist";
import { formatDuration, formatNumber, formatRate, formatTime } from "../core/format";
import { href, setQuery, useRoute } from "../core/router";
import { useCan } from "../core/session";
import { Button } from "../ui/Button";
import { Segments, Select } from "../ui/Field";
import { Badge, Empty, Failure, Loading } from "../ui/states";
import { Key } from "../ui/Key";
import { Table } from "../ui/Table";
import { useNow } from "../ui/useNow";
import { View } from "../ui/View";
import { texts } from "../texts";

const pageSize = 100;
const states = [
	{ value: "all", text: texts.common.all },
	{ value: "running", text: texts.requests.running },
	{ value: "failed", text: texts.common.failed },
] as const;

type State = (typeof states)[number]["value"];

export function Requests() {
	const { all, error, isLoading, reload } = useRequests();
	const isAdmin = useCan("admin");
	const { query } = useRoute();
	const [number, setNumber] = useState(pageSize);
	const state = (states.find((s) => s.value === query.get("state"))?.value ?? "all") as State;
	const model = query.get("model") ?? "";
	const dialect = query.get("api") ?? "";
	const id = query.get("id");
	const found = all.filter((r) => fits(r, state, model, dialect));
	const running = all.filter(isRunning).length;
	return (
		<View
			title={texts.common.requests}
			lead={isAdmin ? texts.requests.requestsModelsNewestFirst : texts.requests.yourOwnRequestsModels}
			actions={running > 0 && <Badge tone="busy">{texts.requests.runningOfRunning(formatNumber(running))}</Badge>}
		>
			<div class="filters">
				<Segments label={texts.requests.which} value={state} onChange={(s) => setQuery({ state: s === "all" ? null : s })} choices={states} />
				<Select
					label={texts.common.model}
					hideLabel
					value={model}
					onChange={(m) => setQuery({ model: m })}
					choices={[{ value: "", text: texts.common.allModels }, ...distinct(all, model, (r) => r.model)]}
				/>
				<Select
					label={texts.common.api}
					hideLabel
					value={dialect}
					onChange={(d) => setQuery({ api: d })}
					choices={[{ value: "", text: texts.requests.allApis }, ...distinct(all, dialect, (r) => r.dialect)]}
				/>
			</div>
			{error && <Failure error={error} retry={reload} />}
			{isLoading && all.length === 0 ? <Loading /> : <List requests={found.slice(0, number)} isFiltered={found.length < all.length} />}
			{found.length > number && (
				<p class="more">
					<Button onClick={() => setNumber(number + pageSize)}>{texts.common.showMore}</Button>
				</p>
			)}
			{id && <RequestDetails key={id} id={id} request={all.find((r) => r.id === id)} onClose={() => setQuery({ id: null })} />}
		</View>
	);
}

function fits(r: Request, state: State, model: string, dialect: string): boolean {
	if (state === "running" && !isRunning(r)) return false;
	if (state === "failed" && !hasFailed(r)) return false;
	return (model === "" || r.model === model) && (dialect === "" || r.dialect === dialect);
}

function distinct(all: Request[], chosen: string, of: (r: Request) => string | undefined): string[] {
	return [...new Set([...all.map(of), chosen])].filter((v): v is string => !!v).sort();
}

function List({ requests, isFiltered }: { requests: Request[]; isFiltered: boolean }) {
	const now = useNow(1000);
	const { query } = useRoute();
	const kept = Object.fromEntries(query);
	return (
		<Table
			label={texts.common.requests}
			rows={requests}
			rowKey={keyOf}
			empty={
				isFiltered ? (
					<Empty title={texts.requests.noRequestFitsFilters} />
				) : (
					<Empty icon="requests" title={texts.requests.noRequestsYet}>
						<p>{texts.requests.appearHereCome(<a href={href("chat")}>{texts.common.askAModelSomething}</a>)}</p>
					</Empty>
				)
			}
			columns={[
				{
					title: texts.common.arrived,
					render: (r) => (
						<a class="nowrap" href={href("requests", "", { ...kept, id: r.id })}>
							<time>{formatTime(r.arrived_at)}</time>
						</a>
					),
				},
				{ title: texts.common.outcome, render: (r) => <Outcome request={r} /> },
				{ title: texts.common.model, name: true, render: (r) => (r.model ? <Key of={r.model} /> : "–") },
				{ title: texts.common.api, minor: true, render: (r) => r.dialect },
				{ title: texts.common.token, minor: true, render: (r) => r.token_name || r.owner || "–" },
				{ title: texts.requests.queue, numeric: true, minor: true, render: (r) => seconds(r.queue_seconds) },
				{ title: texts.common.load, numeric: true, minor: true, render: (r) => seconds(r.load_seconds) },
				{ title: texts.requests.firstToken, numeric: true, minor: true, render: (r) => seconds(r.time_to_first_token_seconds) },
				{ title: texts.common.tokensPerSecond, numeric: true, minor: true, render: (r) => formatRate(speed(r)) },
				{ title: texts.requests.in, numeric: true, minor: true, render: (r) => formatNumber(r.input_tokens) },
				{ title: texts.requests.out, numeric: true, minor: true, render: (r) => formatNumber(r.output_tokens) },
				{
					title: texts.common.took,
					numeric: true,
					minor: "phone",
					render: (r) =>
						isRunning(r) ? (
							<span class="muted">{formatDuration(Math.max(0, (now - Date.parse(r.arrived_at)) / 1000))}</span>
						) : (
							seconds(r.duration_seconds)
						),
				},
			]}
		/>
	);
}

const seconds = (s: number | undefined): string => (s ? formatDuration(s) : "–");

function Outcome({ request: r }: { request: Request }) {
	if (isRunning(r)) return <Badge tone="busy">{texts.requests.lowerRunning}</Badge>;
	if (hasFailed(r)) {
		return (
			<Badge tone="bad">
				{r.status && r.status >= 400 ? `${r.status} ` : ""}
				{r.outcome}
			</Badge>
		);
	}
	return <Badge tone={r.outcome === "cancelled" ? "warning" : "good"}>{r.outcome ?? texts.requests.ok}</Badge>;
}
