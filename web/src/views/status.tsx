import { useState } from "preact/hooks";
import { baseURL, claudeCode, codex, families, firstRequest, languages, tokenVariable, type Family, type Language } from "../core/firstrequests";
import { formatNumber } from "../core/format";
import { useOverview } from "../core/overview";
import { useResource, type Resource } from "../core/resource";
import { href } from "../core/router";
import { session, useCan } from "../core/session";
import { useStore } from "../core/store";
import type { Health, Models, Overview, OverviewInstance } from "../core/types";
import { Code } from "../ui/Copy";
import { Segments, Select } from "../ui/Field";
import { Badge, Empty, Fetched, Note } from "../ui/states";
import { Table } from "../ui/Table";
import { Section, View } from "../ui/View";
import { formatClaim, InstanceLink, InstanceState } from "./instance";
import { Remotes } from "./remotes";
import { texts } from "../texts";

export function Status() {
	const { settings } = useStore(session);
	const mayRead = useCan("models.read");
	const names = useModelNames();
	return (
		<View title={texts.common.status} lead={<HealthLine version={settings?.version} />}>
			{mayRead && <Now />}
			<BaseURLs />
			<FirstRequests names={names} />
			<Agents names={names} />
		</View>
	);
}

const meanings: Record<string, string> = {
	no_engine: texts.status.noEngineInstalledLmcaddy,
	store_unavailable: texts.status.storeConversationsTokensUsed,
	disk_full: texts.status.theDiskIsFull,
	gpu_unusable: texts.status.gpuUsedShouldModels,
	model_failing: texts.status.modelFailsLoadAnswer,
	queue_full: texts.status.queueModelFullFurther,
	preloading: texts.status.modelsPreloadedArentReady,
	starting: texts.status.theServerIsStarting,
	shutting_down: texts.status.serverShuttingDown,
	remote_unreachable: texts.status.remoteReachedModelsUsed,
	node_unreachable: texts.status.anotherNodeClusterReached,
};

function HealthLine({ version }: { version?: string }) {
	const health = useResource<Health>("/api/v1/health", { accept: [503], every: 10_000, events: ["model_load.*"] });
	const { status, reasons, details } = health.data ?? {};
	return (
		<>
			<span class="row">
				{version && <span>{texts.status.version(version)}</span>}
				{status && <Badge tone={({ ok: "good", degraded: "warning", failing: "bad" } as const)[status]}>{{ ok: texts.status.healthy, degraded: texts.status.degraded, failing: texts.status.failing }[status]}</Badge>}
			</span>
			{reasons?.map((code) => (
				<Note key={code} kind={status === "failing" ? "error" : "warning"}>
					{details?.find((d) => d.code === code)?.message ?? meanings[code] ?? code}
				</Note>
			))}
			{health.error && <Note kind="error">{health.error.message}</Note>}
		</>
	);
}

function Now() {
	const overview = useOverview();
	return (
		<>
			<LoadedNow overview={overview} />
			<Remotes all={overview.data?.remotes ?? []} />
		</>
	);
}

function LoadedNow({ overview }: { overview: Resource<Overview> }) {
	return (
		<Section title={texts.status.loadedNow} actions={<a href={href("models")}>{texts.common.allModels}</a>}>
			<Fetched from={overview}>
				{({ instances }) => (
					<Table<OverviewInstance>
						label={texts.status.loadedModels}
						rows={instances}
						rowKey={(i) => i.id}
						columns={[
							{ title: texts.common.instance, name: true, render: (i) => <InstanceLink of={i} /> },
							{ title: texts.common.state, render: (i) => <InstanceState of={i} /> },
							{ title: texts.common.requests, numeric: true, minor: "phone", render: (i) => texts.common.of(i.in_use, i.slots) },
							{ title: texts.common.context, numeric: true, minor: true, render: (i) => formatNumber(i.context_length) },
							{ title: texts.common.memory, numeric: true, render: (i) => formatClaim(i) },
						]}
						empty={
							<Empty icon="models" title={texts.common.noModelIsLoaded}>
								<p>{texts.status.firstRequestModelLoads(<a href={href("models")}>{texts.common.models}</a>)}</p>
							</Empty>
						}
					/>
				)}
			</Fetched>
		</Section>
	);
}

const hints: Record<Family, string> = {
	openai: texts.status.openaiStyleClients,
	anthropic: texts.status.anthropicStyleClients,
	native: texts.status.nativeApiLmStudios,
	v0: texts.status.nativeApiVersion0,
	ollama: texts.status.ollamasClients,
};

function BaseURLs() {
	return (
		<Section title={texts.status.baseUrls}>
			<ul class="urls">
				{families.map(({ value }) => (
					<li key={value}>
						<span>{hints[value]}</span>
						<Code text={baseURL(value, location.origin)} label={texts.status.baseUrlOf(hints[value])} />
					</li>
				))}
			</ul>
		</Section>
	);
}

/** The models that can chat: the loaded ones first, and those of other servers last. */
function useModelNames(): string[] {
	const mayRead = useCan("models.read");
	const models = useResource<Models>(mayRead ? "/api/v1/models" : null, { events: ["models.changed", "model_load.end"] });
	return (models.data?.models ?? [])
		.filter((m) => m.type === "llm")
		.sort((a, b) => b.loaded_instances.length - a.loaded_instances.length || Number(Boolean(a.places)) - Number(Boolean(b.places)))
		.map((m) => m.key);
}

function useSite(model: string) {
	const { settings } = useStore(session);
	return { origin: location.origin, model, needsToken: settings?.authentication ?? false };
}

const placeholder = "publisher/model";

function FirstRequests({ names }: { names: readonly string[] }) {
	const [family, setFamily] = useState<Family>("openai");
	const [language, setLanguage] = useState<Language>("curl");
	const [chosen, setChosen] = useState("");
	const site = useSite(chosen || names[0] || placeholder);
	return (
		<Section title={texts.status.firstRequests}>
			<div class="stack">
				<div class="row pickers">
					<Segments label={texts.common.api} value={family} onChange={setFamily} choices={families} />
					<Segments label={texts.status.language} value={language} onChange={setLanguage} choices={languages} />
					{names.length > 0 && <Select label={texts.common.model} hideLabel value={site.model} onChange={setChosen} choices={names} />}
				</div>
				{site.needsToken && (
					<p class="hint">{texts.status.putYourTokenInto(<code>{tokenVariable}</code>)}</p>
				)}
				<Code block text={firstRequest(family, language, site)} label={texts.status.firstRequest} />
			</div>
		</Section>
	);
}

function Agents({ names }: { names: readonly string[] }) {
	const site = useSite(names[0] ?? placeholder);
	return (
		<Section title={texts.status.codingAgents}>
			<div class="stack">
				<p class="hint">{texts.status.theirPromptsLongLoad}</p>
				<h3>{texts.status.claudeCode}</h3>
				<Code block text={claudeCode(site)} label={texts.status.commandForClaudeCode} />
				<h3>{texts.status.codex}</h3>
				<Code block text={codex(site)} label={texts.status.commandForCodex} />
			</div>
		</Section>
	);
}
