import { formatBytes, formatNumber } from "../core/format";
import type { LoadEstimate } from "../core/types";
import { Bar } from "../ui/Meter";
import { Badge, Note } from "../ui/states";
import { texts } from "../texts";

/** The parts of the estimate, with their colours. */
const parts = [
	["weights_bytes", texts.estimate.weights, 0],
	["kv_cache_bytes", texts.estimate.contextKvCache, 1],
	["prompt_cache_bytes", texts.estimate.promptCache, 2],
	["compute_bytes", texts.estimate.compute, 3],
	["projector_bytes", texts.common.projector, 4],
	["draft_model_bytes", texts.common.draftModel, 4],
	["engine_bytes", texts.common.engine, 5],
] as const;

/** What a load would take, and what it would do to other models. */
export function Estimate({ of: e }: { of: LoadEstimate }) {
	const shown = parts.map(([field, name, shade]) => ({ name, amount: e.memory[field], shade })).filter((p) => p.amount > 0);
	const confidence = { measured: texts.estimate.earlierLoadTook, high: texts.estimate.estimated, low: texts.estimate.roughlyEstimatedFileLacks }[e.memory.confidence];
	return (
		<div class="estimate stack">
			<div class="row between">
				<strong>{texts.estimate.ofMemoryPart(<span class="tabular">{formatBytes(e.memory.total_bytes)}</span>)}</strong>
				<Verdict of={e} />
			</div>
			<Bar label={texts.estimate.memoryOfTheLoad} parts={shown} total={e.memory.total_bytes} format={formatBytes} />
			<ul class="legend">
				{shown.map((p) => (
					<li key={p.name}>
						<span class={`swatch shade-${p.shade}`} />
						{p.name} <span class="tabular muted">{formatBytes(p.amount)}</span>
					</li>
				))}
			</ul>
			<p class="hint">
				{confidence} {texts.estimate.contextAtATime(formatNumber(e.load_config.context_length), formatNumber(e.parallel))}
				{e.free_bytes !== null && e.memory_budget_bytes !== null && " " + texts.estimate.budgetFree(formatBytes(e.free_bytes), formatBytes(e.memory_budget_bytes))}
			</p>
			{e.devices.length > 1 && (
				<ul class="legend">
					{e.devices.map((d) => (
						<li key={d.name}>
							<strong>{d.name}</strong> {formatBytes(d.needed_bytes)} <span class="tabular muted">{texts.estimate.taken(formatBytes(d.taken_bytes), d.budget_bytes > 0 ? formatBytes(d.budget_bytes) : "")}</span>
						</li>
					))}
				</ul>
			)}
			{e.placement && <p class="hint">{texts.estimate.itWouldBeOn(e.placement)}</p>}
			<Effects of={e} />
		</div>
	);
}

function Verdict({ of: e }: { of: LoadEstimate }) {
	if (!e.fits) return <Badge tone="bad">{texts.estimate.doesntFit}</Badge>;
	if (e.would_unload.length > 0 || e.would_shrink.length > 0 || e.would_unload_others) return <Badge tone="warning">{texts.common.fitsAfterMakingRoom}</Badge>;
	if (e.would_wait) return <Badge tone="warning">{texts.estimate.fitsAfterWaiting}</Badge>;
	if (e.smaller) return <Badge tone="warning">{texts.estimate.fitsSmallerSize}</Badge>;
	return <Badge tone="good">{texts.common.fits}</Badge>;
}

function Effects({ of: e }: { of: LoadEstimate }) {
	const effects = [
		!e.fits && e.reason,
		e.would_unload.length > 0 && texts.estimate.unloads(e.would_unload.join(", ")),
		e.would_unload_others && texts.estimate.unloadsOfOthersModels(e.would_unload_others),
		e.would_shrink.length > 0 && texts.estimate.restartsWithLessMemory(e.would_shrink.join(", ")),
		e.smaller && texts.estimate.loadedRequestsTimeSince(e.smaller.parallel, formatBytes(e.smaller.total_bytes)),
		e.would_wait && texts.estimate.waitsUntilRequestsProgress,
	].filter((text): text is string => Boolean(text));
	if (effects.length === 0) return null;
	return (
		<Note kind={e.fits ? "warning" : "error"}>
			<ul>
				{effects.map((text) => (
					<li key={text}>{text}</li>
				))}
			</ul>
		</Note>
	);
}
