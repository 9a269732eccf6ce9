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

export function Status() {
	const { settings } = useStore(session);
	const mayRead = useCan("models.read");
	const names = useModelNames();
	return (
		<View title="Status" lead={<HealthLine version={settings?.version} />}>
			{mayRead && <Now />}
			<BaseURLs />
			<FirstRequests names={names} />
			<Agents names={names} />
		</View>
	);
}

const meanings: Record<string, string> = {
	no_engine: "No engine is installed: lmcaddy runtime get llama.cpp installs one.",
	store_unavailable: "The store of conversations and tokens can't be used.",
	disk_full: "The disk is full.",
	gpu_unusable: "A GPU isn't used as it should be: models are on the processor, or their engine runs without its sandbox.",
	model_failing: "A model fails to load or to answer: Memory says which one and why.",
	queue_full: "The queue of a model is full: further requests for it are refused.",
	preloading: "Models that are preloaded aren't ready yet.",
	starting: "The server is starting.",
	shutting_down: "The server is shutting down.",
	remote_unreachable: "A remote can't be reached: its models can't be used unless another place has them.",
	node_unreachable: "Another node of the cluster can't be reached from this one.",
};

function HealthLine({ version }: { version?: string }) {
	const health = useResource<Health>("/api/v1/health", { accept: [503], every: 10_000, events: ["model_load.*"] });
	const { status, reasons, details } = health.data ?? {};
	return (
		<>
			<span class="row">
				{version && <span>Version {version}</span>}
				{status && <Badge tone={({ ok: "good", degraded: "warning", failing: "bad" } as const)[status]}>{{ ok: "Healthy", degraded: "Degraded", failing: "Failing" }[status]}</Badge>}
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
		<Section title="Loaded now" actions={<a href={href("models")}>All models</a>}>
			<Fetched from={overview}>
				{({ instances }) => (
					<Table<OverviewInstance>
						label="Loaded models"
						rows={instances}
						rowKey={(i) => i.id}
						columns={[
							{ title: "Instance", name: true, render: (i) => <InstanceLink of={i} /> },
							{ title: "State", render: (i) => <InstanceState of={i} /> },
							{ title: "Requests", numeric: true, minor: "phone", render: (i) => `${i.in_use} of ${i.slots}` },
							{ title: "Context", numeric: true, minor: true, render: (i) => formatNumber(i.context_length) },
							{ title: "Memory", numeric: true, render: (i) => formatClaim(i) },
						]}
						empty={
							<Empty icon="models" title="No model is loaded">
								<p>
									The first request for a model loads it, or load one under <a href={href("models")}>Models</a>.
								</p>
							</Empty>
						}
					/>
				)}
			</Fetched>
		</Section>
	);
}

const hints: Record<Family, string> = {
	openai: "OpenAI-style clients",
	anthropic: "Anthropic-style clients",
	native: "Native API, as LM Studio's",
	v0: "Native API, version 0",
	ollama: "Ollama's clients",
};

function BaseURLs() {
	return (
		<Section title="Base URLs">
			<ul class="urls">
				{families.map(({ value }) => (
					<li key={value}>
						<span>{hints[value]}</span>
						<Code text={baseURL(value, location.origin)} label={`base URL of ${hints[value]}`} />
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
		<Section title="First requests">
			<div class="stack">
				<div class="row pickers">
					<Segments label="API" value={family} onChange={setFamily} choices={families} />
					<Segments label="Language" value={language} onChange={setLanguage} choices={languages} />
					{names.length > 0 && <Select label="Model" hideLabel value={site.model} onChange={setChosen} choices={names} />}
				</div>
				{site.needsToken && (
					<p class="hint">
						Put your token into the environment variable <code>{tokenVariable}</code>.
					</p>
				)}
				<Code block text={firstRequest(family, language, site)} label="first request" />
			</div>
		</Section>
	);
}

function Agents({ names }: { names: readonly string[] }) {
	const site = useSite(names[0] ?? placeholder);
	return (
		<Section title="Coding agents">
			<div class="stack">
				<p class="hint">Their prompts are long: load the model with a context of at least 32,768 tokens.</p>
				<h3>Claude Code</h3>
				<Code block text={claudeCode(site)} label="command for Claude Code" />
				<h3>Codex</h3>
				<Code block text={codex(site)} label="command for Codex" />
			</div>
		</Section>
	);
}
