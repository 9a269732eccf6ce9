import { useState } from "preact/hooks";
import { formatBytes, formatDuration, formatNumber, formatTime, formatUntil } from "../core/format";
import { call, segment } from "../core/http";
import { useOverview } from "../core/overview";
import { useResource } from "../core/resource";
import { href, navigate } from "../core/router";
import { lacks, useCan } from "../core/session";
import type { ModelDetails as Details, OverviewInstance } from "../core/types";
import { Button } from "../ui/Button";
import { confirm } from "../ui/confirm";
import { Code } from "../ui/Copy";
import { Key } from "../ui/Key";
import { Badge, Empty, Fact, Facts, Fetched, Note } from "../ui/states";
import { Table } from "../ui/Table";
import { toast } from "../ui/toast";
import { Section, View } from "../ui/View";
import { Companions } from "./companions";
import { Estimate } from "./estimate";
import { formatClaim, InstanceActions, InstanceState } from "./instance";
import { LoadDialog } from "./loaddialog";
import { Places } from "./remotes";

/** Everything that is known of a model. */
export function ModelDetails({ name }: { name: string }) {
	const model = useResource<Details>("/api/v1/models/" + segment(name), { events: ["models.changed", "model_load.end", "model_unload.end"] });
	const [isLoading, setLoading] = useState(false);
	const disabledFor = useCan("models.manage") ? null : lacks("models.manage");
	const key = model.data?.key ?? name;
	return (
		<View
			title={key}
			lead={
				<span class="row">
					<a href={href("models")}>Models</a>
					{model.data && <Badges of={model.data} />}
				</span>
			}
			actions={
				model.data && (
					<>
						{model.data.type === "llm" && (
							<a class="button" href={href("chat", "", { model: key })}>
								Chat
							</a>
						)}
						<Button kind="primary" disabledFor={disabledFor} onClick={() => setLoading(true)}>
							Load…
						</Button>
						{model.data.files.length > 0 && (
							<Button icon="trash" disabledFor={disabledFor} onClick={() => remove(key)}>
								Delete…
							</Button>
						)}
					</>
				)
			}
		>
			<Fetched from={model}>
				{(m) => (
					<>
						{m.description && <p class="prose">{m.description}</p>}
						<Instances of={m} onDone={model.reload} />
						<About of={m} />
						{m.files.length > 0 && <LocalSettings of={m.settings} />}
						{(m.load || m.load_error) && <NextLoad of={m} />}
						{m.files.length > 0 && <Files of={m} />}
						{m.companions && (
							<Section title="Files beside it, not loaded with it">
								<Companions of={m.companions} />
							</Section>
						)}
						{m.chat_template && (
							<details class="section">
								<summary>
									<h2>Chat template</h2>
								</summary>
								<Code block text={m.chat_template} label="chat template" />
							</details>
						)}
					</>
				)}
			</Fetched>
			{isLoading && model.data && <LoadDialog model={model.data} onClose={() => (setLoading(false), model.reload())} />}
		</View>
	);
}

async function remove(key: string): Promise<void> {
	const isSure = await confirm({
		title: "Delete the model",
		text: <p>All files of {key} are deleted from the disk. They have to be downloaded again to use it.</p>,
		action: "Delete",
		danger: true,
		typed: key,
	});
	if (!isSure) return;
	await call("DELETE", "/api/v1/models/" + segment(key));
	toast(`${key} is deleted.`);
	navigate("models");
}

function Badges({ of: m }: { of: Details }) {
	return (
		<>
			<Badge>{m.type === "llm" ? "Language model" : "Embedding model"}</Badge>
			{m.reranker && <Badge>Reranker</Badge>}
			{m.capabilities?.vision && <Badge>Vision</Badge>}
			{m.capabilities?.trained_for_tool_use && <Badge>Tools</Badge>}
			{m.capabilities?.reasoning && <Badge>Thinking: {m.capabilities.reasoning.allowed_options.join(", ")}</Badge>}
		</>
	);
}

function Instances({ of: m, onDone }: { of: Details; onDone: () => void }) {
	const overview = useOverview();
	const instances = overview.data?.instances.filter((i) => i.model === m.key) ?? [];
	const failing = overview.data?.failing.find((f) => f.model === m.key);
	return (
		<>
			<Section title="Instances">
				{failing && (
					<Note kind="error">
						It has failed {failing.failures === 1 ? "once" : `${failing.failures} times in a row`}. Next attempt {formatUntil(failing.retry_at)}. {failing.reason}
					</Note>
				)}
				<Table<OverviewInstance>
					label="Instances"
					rows={instances}
					rowKey={(i) => i.id}
					columns={[
						{ title: "Instance", name: true, render: (i) => <Key of={i.id} /> },
						{ title: "State", render: (i) => <InstanceState of={i} /> },
						{ title: "Requests", numeric: true, minor: true, render: (i) => `${i.in_use} of ${i.slots}` },
						{ title: "Context", numeric: true, minor: true, render: (i) => formatNumber(i.context_length) },
						{ title: "Memory", numeric: true, minor: "phone", render: (i) => formatClaim(i) },
						{ title: "Loaded", minor: true, render: (i) => formatTime(i.loaded_at) },
						{ title: "Unloads", minor: true, render: (i) => (i.expires_at ? formatUntil(i.expires_at) : "never") },
						{ title: "Actions", hideTitle: true, render: (i) => <InstanceActions of={i} onDone={() => (overview.reload(), onDone())} /> },
					]}
					empty={<Empty title="It isn't loaded">The first request loads it.</Empty>}
				/>
			</Section>
			<Places of={m} instances={instances} />
		</>
	);
}

function About({ of: m }: { of: Details }) {
	return (
		<Section title="About">
			<div class="card">
				<Facts>
					<Fact name="Architecture">{m.architecture}</Fact>
					<Fact name="Parameters">{m.parameters ? `${m.params_string ?? ""} (${formatNumber(m.parameters)})` : m.params_string}</Fact>
					<Fact name="Experts">{m.experts && `${m.experts.total}, ${m.experts.used} used for each token`}</Fact>
					<Fact name="Quantization">{m.quantization?.name && `${m.quantization.name}${m.quantization.bits_per_weight ? `, ${m.quantization.bits_per_weight} bits` : ""}`}</Fact>
					<Fact name="Size">{m.size_bytes > 0 && formatBytes(m.size_bytes)}</Fact>
					<Fact name="Longest context">{m.max_context_length > 0 && `${formatNumber(m.max_context_length)} tokens`}</Fact>
					<Fact name="Vocabulary">{m.vocabulary_size && formatNumber(m.vocabulary_size)}</Fact>
					<Fact name="Format">{m.format?.toUpperCase()}</Fact>
					<Fact name="Engine">{m.engine}</Fact>
					<Fact name="Aliases">{m.aliases?.join(", ")}</Fact>
					<Fact name="License">{m.license && (m.license.name ?? m.license.id)}</Fact>
					<Fact name="Author">{m.author}</Fact>
					<Fact name="Quantized by">{m.quantized_by}</Fact>
					<Fact name="Source">{m.source_url && <Outside url={m.source_url} />}</Fact>
					<Fact name="Base model">{m.base_model_url && <Outside url={m.base_model_url} />}</Fact>
					<Fact name="Revision">{m.revision && <span class="mono">{m.revision}</span>}</Fact>
				</Facts>
			</div>
		</Section>
	);
}

function LocalSettings({ of: s }: { of: Details["settings"] }) {
	return (
		<Section title="Settings">
			<div class="card">
				<Facts>
					<Fact name="Context length">{s.context_length ? `${formatNumber(s.context_length)} tokens` : "Chosen by memory"}</Fact>
					<Fact name="Requests at a time">{s.parallel ?? "Chosen by memory"}</Fact>
					<Fact name="Unloaded after">{s.ttl_seconds ? `${formatDuration(s.ttl_seconds)} without requests` : "Never"}</Fact>
					<Fact name="Draft model">{s.draft_model}</Fact>
					<Fact name="Preload">{s.preload ? "Yes" : "No"}</Fact>
					<Fact name="Pinned">{s.pinned ? "Yes" : "No"}</Fact>
					<Fact name="Warm conversations">{s.warm ? "On" : "Off"}</Fact>
					<Fact name="Arguments">{s.args && s.args.length > 0 && <span class="mono">{s.args.join(" ")}</span>}</Fact>
				</Facts>
				<p class="hint gap">
					{s.configured ? "It has settings of its own in the configuration." : "It has no settings of its own."} <a href={href("settings")}>How to change them</a>
				</p>
			</div>
		</Section>
	);
}

/** A link to another site. Only addresses of the web become links. */
function Outside({ url }: { url: string }) {
	if (!/^https?:\/\//i.test(url)) return <>{url}</>;
	return (
		<a href={url} target="_blank" rel="noopener noreferrer">
			{url.replace(/^https?:\/\//i, "")}
		</a>
	);
}

function NextLoad({ of: m }: { of: Details }) {
	return (
		<Section title="Memory of another load">
			{m.load_error && <Note kind="error">{m.load_error}</Note>}
			{m.load && (
				<div class="card">
					<Estimate of={m.load} />
				</div>
			)}
		</Section>
	);
}

function Files({ of: m }: { of: Details }) {
	return (
		<Section title="Files">
			<Table
				label="Files"
				rows={m.files}
				rowKey={(f) => f.path}
				columns={[
					{ title: "Path", name: true, render: (f) => <span class="mono">{f.path}</span> },
					{ title: "Role", minor: true, render: (f) => ({ model: "Model", projector: "Projector" })[f.role] },
					{ title: "Size", numeric: true, render: (f) => formatBytes(f.size_bytes) },
				]}
			/>
		</Section>
	);
}
