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
import { texts } from "../texts";

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
					<a href={href("models")}>{texts.common.models}</a>
					{model.data && <Badges of={model.data} />}
				</span>
			}
			actions={
				model.data && (
					<>
						{model.data.type === "llm" && (
							<a class="button" href={href("chat", "", { model: key })}>{texts.common.chat}</a>
						)}
						<Button kind="primary" disabledFor={disabledFor} onClick={() => setLoading(true)}>{texts.common.loadDialog}</Button>
						{model.data.files.length > 0 && (
							<Button icon="trash" disabledFor={disabledFor} onClick={() => remove(key)}>{texts.common.deleteDialog}</Button>
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
							<Section title={texts.modelDetails.filesBesideNotLoaded}>
								<Companions of={m.companions} />
							</Section>
						)}
						{m.chat_template && (
							<details class="section">
								<summary>
									<h2>{texts.modelDetails.chatTemplate}</h2>
								</summary>
								<Code block text={m.chat_template} label={texts.modelDetails.lowerChatTemplate} />
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
		title: texts.modelDetails.deleteTheModel,
		text: <p>{texts.modelDetails.filesDeletedDiskDownloaded(key)}</p>,
		action: texts.common.delete,
		danger: true,
		typed: key,
	});
	if (!isSure) return;
	await call("DELETE", "/api/v1/models/" + segment(key));
	toast(texts.modelDetails.isDeletedKey(key));
	navigate("models");
}

function Badges({ of: m }: { of: Details }) {
	return (
		<>
			<Badge>{m.type === "llm" ? texts.modelDetails.languageModel : texts.modelDetails.embeddingModel}</Badge>
			{m.reranker && <Badge>{texts.modelDetails.reranker}</Badge>}
			{m.capabilities?.vision && <Badge>{texts.common.vision}</Badge>}
			{m.capabilities?.audio && <Badge>{texts.common.audio}</Badge>}
			{m.capabilities?.trained_for_tool_use && <Badge>{texts.common.tools}</Badge>}
			{m.capabilities?.reasoning && <Badge>{texts.modelDetails.thinking(m.capabilities.reasoning.allowed_options.join(", "))}</Badge>}
		</>
	);
}

function Instances({ of: m, onDone }: { of: Details; onDone: () => void }) {
	const overview = useOverview();
	const instances = overview.data?.instances.filter((i) => i.model === m.key) ?? [];
	const failing = overview.data?.failing.find((f) => f.model === m.key);
	return (
		<>
			<Section title={texts.common.instances}>
				{failing && (
					<Note kind="error">
						{texts.memory.hasFailed(texts.modelDetails.it, failing.failures)} {texts.memory.nextAttempt(formatUntil(failing.retry_at))} {failing.reason}
					</Note>
				)}
				<Table<OverviewInstance>
					label={texts.common.instances}
					rows={instances}
					rowKey={(i) => i.id}
					columns={[
						{ title: texts.common.instance, name: true, render: (i) => <Key of={i.id} /> },
						{ title: texts.common.state, render: (i) => <InstanceState of={i} /> },
						{ title: texts.common.requests, numeric: true, minor: true, render: (i) => texts.common.of(i.in_use, i.slots) },
						{ title: texts.common.context, numeric: true, minor: true, render: (i) => formatNumber(i.context_length) },
						{ title: texts.common.memory, numeric: true, minor: "phone", render: (i) => formatClaim(i) },
						{ title: texts.common.loaded, minor: true, render: (i) => formatTime(i.loaded_at) },
						{ title: texts.common.unloads, minor: true, render: (i) => (i.expires_at ? formatUntil(i.expires_at) : texts.common.lowerNever) },
						{ title: texts.common.actions, hideTitle: true, render: (i) => <InstanceActions of={i} onDone={() => (overview.reload(), onDone())} /> },
					]}
					empty={<Empty title={texts.modelDetails.itIsntLoaded}>{texts.modelDetails.firstRequestLoads}</Empty>}
				/>
			</Section>
			<Places of={m} instances={instances} />
		</>
	);
}

function About({ of: m }: { of: Details }) {
	return (
		<Section title={texts.modelDetails.about}>
			<div class="card">
				<Facts>
					<Fact name={texts.modelDetails.architecture}>{m.architecture}</Fact>
					<Fact name={texts.common.parameters}>{m.parameters ? `${m.params_string ?? ""} (${formatNumber(m.parameters)})` : m.params_string}</Fact>
					<Fact name={texts.modelDetails.experts}>{m.experts && texts.modelDetails.usedForEachToken(m.experts.total, m.experts.used)}</Fact>
					<Fact name={texts.common.quantization}>{m.quantization?.name && `${m.quantization.name}${m.quantization.bits_per_weight ? texts.modelDetails.bitsBitsPerWeight(m.quantization.bits_per_weight) : ""}`}</Fact>
					<Fact name={texts.common.size}>{m.size_bytes > 0 && formatBytes(m.size_bytes)}</Fact>
					<Fact name={texts.modelDetails.longestContext}>{m.max_context_length > 0 && texts.modelDetails.tokensMaxContextLength(formatNumber(m.max_context_length))}</Fact>
					<Fact name={texts.modelDetails.vocabulary}>{m.vocabulary_size && formatNumber(m.vocabulary_size)}</Fact>
					<Fact name={texts.modelDetails.format}>{m.format?.toUpperCase()}</Fact>
					<Fact name={texts.common.engine}>{m.engine}</Fact>
					<Fact name={texts.modelDetails.aliases}>{m.aliases?.join(", ")}</Fact>
					<Fact name={texts.modelDetails.license}>{m.license && (m.license.name ?? m.license.id)}</Fact>
					<Fact name={texts.modelDetails.author}>{m.author}</Fact>
					<Fact name={texts.modelDetails.quantizedBy}>{m.quantized_by}</Fact>
					<Fact name={texts.common.source}>{m.source_url && <Outside url={m.source_url} />}</Fact>
					<Fact name={texts.modelDetails.baseModel}>{m.base_model_url && <Outside url={m.base_model_url} />}</Fact>
					<Fact name={texts.modelDetails.revision}>{m.revision && <span class="mono">{m.revision}</span>}</Fact>
				</Facts>
			</div>
		</Section>
	);
}

function LocalSettings({ of: s }: { of: Details["settings"] }) {
	return (
		<Section title={texts.common.settings}>
			<div class="card">
				<Facts>
					<Fact name={texts.common.contextLength}>{s.context_length ? texts.modelDetails.tokensContextLength(formatNumber(s.context_length)) : texts.common.chosenByMemory}</Fact>
					<Fact name={texts.common.requestsAtATime}>{s.parallel ?? texts.common.chosenByMemory}</Fact>
					<Fact name={texts.modelDetails.unloadedAfter}>{s.ttl_seconds ? texts.modelDetails.withoutRequestsTtlSeconds(formatDuration(s.ttl_seconds)) : texts.common.never}</Fact>
					<Fact name={texts.common.draftModel}>{s.draft_model}</Fact>
					<Fact name={texts.modelDetails.preload}>{s.preload ? texts.common.yes : texts.common.no}</Fact>
					<Fact name={texts.common.pinned}>{s.pinned ? texts.common.yes : texts.common.no}</Fact>
					<Fact name={texts.modelDetails.warmConversations}>{s.warm ? texts.common.on : texts.common.off}</Fact>
					<Fact name={texts.common.arguments}>{s.args && s.args.length > 0 && <span class="mono">{s.args.join(" ")}</span>}</Fact>
				</Facts>
				<p class="hint gap">
					{s.configured ? texts.modelDetails.settingsOwnConfiguration : texts.modelDetails.noSettingsOwn} <a href={href("settings")}>{texts.modelDetails.howToChangeThem}</a>
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
		<Section title={texts.modelDetails.memoryOfAnotherLoad}>
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
		<Section title={texts.common.files}>
			<Table
				label={texts.common.files}
				rows={m.files}
				rowKey={(f) => f.path}
				columns={[
					{ title: texts.common.path, name: true, render: (f) => <span class="mono">{f.path}</span> },
					{ title: texts.common.role, minor: true, render: (f) => ({ model: texts.common.model, projector: texts.common.projector })[f.role] },
					{ title: texts.common.size, numeric: true, render: (f) => formatBytes(f.size_bytes) },
				]}
			/>
		</Section>
	);
}
