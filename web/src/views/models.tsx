import { useMemo, useState } from "preact/hooks";
import { formatBytes, formatNumber } from "../core/format";
import { useOverview } from "../core/overview";
import { useResource } from "../core/resource";
import { href, setQuery, useRoute } from "../core/router";
import { lacks, useCan } from "../core/session";
import type { Companions as AllOf, Model, Models as All, Overview } from "../core/types";
import { Button } from "../ui/Button";
import { Checkbox, Select, TextField } from "../ui/Field";
import { Key } from "../ui/Key";
import { Badge, Empty, Fetched, Note } from "../ui/states";
import { Table, type Column } from "../ui/Table";
import { View } from "../ui/View";
import { InstanceState, Unload } from "./instance";
import { Companions } from "./companions";
import { LoadDialog } from "./loaddialog";
import { Devices } from "./memory";
import { ModelDetails } from "./modeldetails";
import { texts } from "../texts";

type SortKey = "name" | "size" | "context";

export function Models({ rest }: { rest: string }) {
	if (rest) return <ModelDetails name={rest} />;
	return <ModelList />;
}

function ModelList() {
	const models = useResource<All>("/api/v1/models", { events: ["models.changed", "model_load.end", "model_unload.end", "download.completed"], every: 15_000 });
	const overview = useOverview();
	const { query } = useRoute();
	const [loading, setLoading] = useState<Model | null>(null);
	const mayManage = useCan("models.manage");
	return (
		<View
			title={texts.common.models}
			lead={models.data && summary(models.data)}
			actions={
				<a class="button primary" href={href("downloads")}>{texts.models.downloadAModel}</a>
			}
		>
			{overview.data && overview.data.instances.length > 0 && <Devices of={overview.data} />}
			<Filters query={query} />
			<Fetched from={models}>
				{(all) => (
					<>
						{all.broken?.map((b) => (
							<Note key={b.path} kind="warning">
								<span>{texts.models.cantBeUsed(<strong>{b.key}</strong>, b.error, <span class="mono">{b.path}</span>)}</span>
							</Note>
						))}
						{all.models.map(
							(m) =>
								m.engine_problem && (
									<Note key={m.key} kind="warning">
										<span>{texts.models.cantBeLoaded(<strong>{m.key}</strong>, m.engine_problem)}</span>
									</Note>
								),
						)}
						<List all={all.models} query={query} overview={overview.data} onLoad={setLoading} onUnloaded={() => (overview.reload(), models.reload())} disabledFor={mayManage ? null : lacks("models.manage")} />
					</>
				)}
			</Fetched>
			<AllCompanions />
			{loading && <LoadDialog model={loading} onClose={() => setLoading(null)} />}
		</View>
	);
}

/** The files that belong to models, which are no models. */
function AllCompanions() {
	const all = useResource<AllOf>("/api/v1/models/companions", { events: ["models.changed"] });
	if (!all.data?.companions.length) return null;
	return (
		<details class="section">
			<summary>
				<h2>{texts.common.filesOfModels}</h2>
			</summary>
			<Companions of={all.data.companions} />
		</details>
	);
}

function summary({ models }: All): string {
	const size = models.reduce((sum, m) => sum + m.size_bytes, 0);
	const loaded = models.filter((m) => m.loaded_instances.length > 0).length;
	return texts.models.onDiskLoaded(models.length, formatBytes(size), loaded);
}

function Filters({ query }: { query: URLSearchParams }) {
	return (
		<div class="filters" role="search">
			<TextField label={texts.common.search} type="search" placeholder={texts.models.nameArchitectureOrQuantization} value={query.get("q") ?? ""} onInput={(q) => setQuery({ q })} />
			<Select
				label={texts.models.type}
				value={query.get("type") ?? ""}
				onChange={(type) => setQuery({ type })}
				choices={[
					{ value: "", text: texts.models.allTypes },
					{ value: "llm", text: texts.models.languageModels },
					{ value: "embedding", text: texts.models.embeddingModels },
				]}
			/>
			<Checkbox label={texts.models.onlyLoaded} checked={query.get("loaded") === "1"} onChange={(on) => setQuery({ loaded: on ? "1" : null })} />
		</div>
	);
}

function found(m: Model, query: URLSearchParams): boolean {
	const text = [m.key, m.display_name, m.architecture, m.quantization?.name, m.params_string, ...(m.aliases ?? [])].join(" ").toLowerCase();
	const words = (query.get("q") ?? "").toLowerCase().split(/\s+/);
	const type = query.get("type");
	return words.every((w) => text.includes(w)) && (!type || m.type === type) && (query.get("loaded") !== "1" || m.loaded_instances.length > 0);
}

const compare: Record<SortKey, (a: Model, b: Model) => number> = {
	name: (a, b) => a.key.localeCompare(b.key),
	size: (a, b) => b.size_bytes - a.size_bytes,
	context: (a, b) => b.max_context_length - a.max_context_length,
};

function List({ all, query, overview, onLoad, onUnloaded, disabledFor }: { all: readonly Model[]; query: URLSearchParams; overview: Overview | null; onLoad: (m: Model) => void; onUnloaded: () => void; disabledFor: string | null }) {
	const by = (query.get("sort") ?? "name") as SortKey;
	const isBack = query.get("order") === "back";
	const rows = useMemo(() => {
		const sorted = all.filter((m) => found(m, query)).sort(compare[by] ?? compare.name);
		return isBack ? sorted.reverse() : sorted;
	}, [all, query, by, isBack]);
	const sort = (key: SortKey, first: "ascending" | "descending") => ({
		direction: by !== key ? null : isBack === (first === "ascending") ? ("descending" as const) : ("ascending" as const),
		onSort: () => setQuery({ sort: key === "name" ? null : key, order: by === key && !isBack ? "back" : null }),
	});
	const columns: Column<Model>[] = [
		{ title: texts.common.model, name: true, sort: sort("name", "ascending"), render: (m) => <Name of={m} /> },
		{ title: texts.common.quantization, minor: true, render: (m) => m.quantization?.name ?? "–" },
		{ title: texts.common.parameters, minor: true, numeric: true, render: (m) => m.params_string ?? "–" },
		{ title: texts.common.size, numeric: true, minor: "phone", sort: sort("size", "descending"), render: (m) => formatBytes(m.size_bytes || null) },
		{ title: texts.common.context, numeric: true, minor: true, sort: sort("context", "descending"), render: (m) => formatNumber(m.max_context_length || null) },
		{ title: texts.common.state, render: (m) => <States of={m} overview={overview} /> },
		{
			title: texts.common.actions,
			hideTitle: true,
			render: (m) => (
				<span class="actions">
					<Button small disabledFor={disabledFor} onClick={() => onLoad(m)} aria-label={texts.common.loadKey(m.key)}>{texts.common.loadDialog}</Button>
					{overview?.instances
						.filter((i) => i.model === m.key && !i.remote)
						.map((i) => (
							<Unload key={i.id} of={i} disabledFor={disabledFor} onDone={onUnloaded} />
						))}
				</span>
			),
		},
	];
	return (
		<Table
			label={texts.common.models}
			columns={columns}
			rows={rows}
			rowKey={(m) => m.key}
			empty={
				all.length === 0 ? (
					<Empty icon="models" title={texts.models.noModelsYet}>
						<p>{texts.models.putGgufFilesInto(<a href={href("downloads")}>{texts.models.downloadOne}</a>)}</p>
					</Empty>
				) : (
					<Empty icon="search" title={texts.models.noModelMatches}>
						<p>{texts.models.changeSearchClearFilters}</p>
					</Empty>
				)
			}
		/>
	);
}

function Name({ of: m }: { of: Model }) {
	return (
		<div class="name-cell">
			<a href={href("models", m.key)}>
				<Key of={m.key} />
			</a>
			<span class="row tight">
				{m.type === "embedding" && <Badge>{texts.models.embeddings}</Badge>}
				{m.capabilities?.vision && <Badge>{texts.common.vision}</Badge>}
				{m.capabilities?.audio && <Badge>{texts.common.audio}</Badge>}
				{m.capabilities?.trained_for_tool_use && <Badge>{texts.common.tools}</Badge>}
				{m.capabilities?.reasoning && <Badge>{texts.common.thinking}</Badge>}
				{m.format && m.format !== "gguf" && <Badge>{m.format.toUpperCase()}</Badge>}
			</span>
		</div>
	);
}

function States({ of: m, overview }: { of: Model; overview: Overview | null }) {
	const instances = overview?.instances.filter((i) => i.model === m.key) ?? [];
	if (instances.length === 0) return <span class="muted">{m.loaded_instances.length > 0 ? texts.common.loaded : texts.common.notLoaded}</span>;
	return (
		<>
			{instances.map((i) => (
				<div key={i.id}>
					<InstanceState of={i} />
				</div>
			))}
		</>
	);
}
