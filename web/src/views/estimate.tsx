import { formatBytes, formatNumber } from "../core/format";
import type { LoadEstimate } from "../core/types";
import { Bar } from "../ui/Meter";
import { Badge, Note } from "../ui/states";

/** The parts of the estimate, with their colours. */
const parts = [
	["weights_bytes", "Weights", 0],
	["kv_cache_bytes", "Context (KV cache)", 1],
	["prompt_cache_bytes", "Prompt cache", 2],
	["compute_bytes", "Compute", 3],
	["projector_bytes", "Projector", 4],
	["draft_model_bytes", "Draft model", 4],
	["engine_bytes", "Engine", 5],
] as const;

/** What a load would take, and what it would do to other models. */
export function Estimate({ of: e }: { of: LoadEstimate }) {
	const shown = parts.map(([field, name, shade]) => ({ name, amount: e.memory[field], shade })).filter((p) => p.amount > 0);
	const confidence = { measured: "as an earlier load took", high: "estimated", low: "roughly estimated: the file lacks figures" }[e.memory.confidence];
	return (
		<div class="estimate stack">
			<div class="row between">
				<strong>
					<span class="tabular">{formatBytes(e.memory.total_bytes)}</span> of memory
				</strong>
				<Verdict of={e} />
			</div>
			<Bar label="Memory of the load" parts={shown} total={e.memory.total_bytes} format={formatBytes} />
			<ul class="legend">
				{shown.map((p) => (
					<li key={p.name}>
						<span class={`swatch shade-${p.shade}`} />
						{p.name} <span class="tabular muted">{formatBytes(p.amount)}</span>
					</li>
				))}
			</ul>
			<p class="hint">
				{confidence[0]?.toUpperCase() + confidence.slice(1)}. Context of {formatNumber(e.load_config.context_length)} tokens, {formatNumber(e.parallel)} at a time.
				{e.free_bytes !== null && e.memory_budget_bytes !== null && ` ${formatBytes(e.free_bytes)} of the budget of ${formatBytes(e.memory_budget_bytes)} are free.`}
			</p>
			{e.devices.length > 1 && (
				<ul class="legend">
					{e.devices.map((d) => (
						<li key={d.name}>
							<strong>{d.name}</strong> {formatBytes(d.needed_bytes)} <span class="tabular muted">{d.budget_bytes > 0 && `of ${formatBytes(d.budget_bytes)}, `}{formatBytes(d.taken_bytes)} taken by models</span>
						</li>
					))}
				</ul>
			)}
			{e.placement && <p class="hint">It would be on: {e.placement}.</p>}
			<Effects of={e} />
		</div>
	);
}

function Verdict({ of: e }: { of: LoadEstimate }) {
	if (!e.fits) return <Badge tone="bad">Doesn't fit</Badge>;
	if (e.would_unload.length > 0 || e.would_shrink.length > 0 || e.would_unload_others) return <Badge tone="warning">Fits after making room</Badge>;
	if (e.would_wait) return <Badge tone="warning">Fits after waiting</Badge>;
	if (e.smaller) return <Badge tone="warning">Fits in a smaller size</Badge>;
	return <Badge tone="good">Fits</Badge>;
}

function Effects({ of: e }: { of: LoadEstimate }) {
	const effects = [
		!e.fits && e.reason,
		e.would_unload.length > 0 && `Unloads ${e.would_unload.join(", ")}.`,
		e.would_unload_others && `Unloads ${e.would_unload_others} of others' models.`,
		e.would_shrink.length > 0 && `Restarts ${e.would_shrink.join(", ")} with less memory.`,
		e.smaller && `Is loaded with ${e.smaller.parallel} requests at a time and ${formatBytes(e.smaller.total_bytes)}, since models in use leave no more room.`,
		e.would_wait && "Waits until requests in progress have ended.",
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
