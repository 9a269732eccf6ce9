import type { ComponentChildren } from "preact";
import { formatBytes, formatNumber, formatUntil } from "../core/format";
import { useOverview } from "../core/overview";
import { href } from "../core/router";
import type { Overview, OverviewInstance } from "../core/types";
import { Bar, type Part } from "../ui/Meter";
import { Badge, Empty, Fetched, Note } from "../ui/states";
import { Table } from "../ui/Table";
import { Section, View } from "../ui/View";
import { useNow } from "../ui/useNow";
import { formatClaim, InstanceActions, InstanceLink, InstanceState } from "./instance";
import { texts } from "../texts";

export function Memory() {
	const overview = useOverview();
	return (
		<View title={texts.common.memory} lead={overview.data && <Lead of={overview.data} />}>
			<Fetched from={overview}>
				{(o) => (
					<>
						<Trouble of={o} />
						<Budget of={o} />
						<Devices of={o} />
						<Instances of={o} onDone={overview.reload} />
					</>
				)}
			</Fetched>
		</View>
	);
}

function Lead({ of: o }: { of: Overview }) {
	const { memory_budget_bytes: budget, max_loaded: most } = o.limits;
	return (
		<>
			{formatBytes(o.memory_bytes)} {budget > 0 ? texts.memory.ofTheBudgetOf(formatBytes(budget)) : texts.memory.usedWithoutABudget}
			{most > 0 && texts.memory.ofAtMostInstances(o.instances.length, most)}
		</>
	);
}

/** What fails, what will be restarted, and what requests wait for. */
function Trouble({ of: o }: { of: Overview }) {
	const now = useNow();
	return (
		<>
			{o.faults?.map((fault) => (
				<Note key={fault} kind="warning">
					{fault}
				</Note>
			))}
			{o.failing.map((f) => (
				<Note key={f.model} kind="error">
					<span>
						{texts.memory.hasFailed(<a href={href("models", f.model)}>{f.model}</a>, f.failures)} {texts.memory.nextAttempt(formatUntil(f.retry_at, now))} {f.reason}
					</span>
				</Note>
			))}
			{o.coming.map((c) => (
				<Note key={c.id} kind="warning">
					<span>{texts.memory.isRestarted(c.id, formatUntil(c.at, now), c.reason ?? "")}</span>
				</Note>
			))}
			{Object.entries(o.waiting).map(([model, n]) => (
				<Note key={model}>
					<span>
						{texts.memory.requestsWait(n, <a href={href("models", model)}>{model}</a>)}
					</span>
				</Note>
			))}
		</>
	);
}

const here = (o: Overview): OverviewInstance[] => o.instances.filter((i) => !i.remote);
const shadeOf = (o: Overview, id: string): number => Math.max(0, here(o).findIndex((i) => i.id === id)) % 5;
const free = 5; // the shade of what others use

type Device = NonNullable<Overview["devices"]>[number];

/** Whether a device has memory of its own, which doesn't count against the machine's budget. */
const hasOwnMemory = (d: Device): boolean => d.kind === "gpu" && !d.unified;

/** What an instance takes of a device. */
const amountOn = (i: OverviewInstance, device: string): number => i.devices?.find((d) => d.name === device)?.memory_bytes ?? 0;

function Budget({ of: o }: { of: Overview }) {
	const { memory_budget_bytes: budget } = o.limits;
	const own = (o.devices ?? []).filter(hasOwnMemory);
	const parts: Part[] = here(o).map((i) => ({ name: i.id, amount: own.reduce((rest, d) => rest - amountOn(i, d.name), i.memory_bytes), shade: shadeOf(o, i.id) }));
	return (
		<Section title={own.length > 0 ? texts.memory.budgetMachinesMemory : texts.memory.budget}>
			<Measure name={budget > 0 ? texts.common.allModels : texts.memory.modelsWithoutBudget} used={o.memory_bytes} total={budget || o.memory_bytes} parts={parts} />
		</Section>
	);
}

/** The memory of each device, and what takes it. */
export function Devices({ of: o }: { of: Overview }) {
	const devices = o.devices ?? [];
	if (devices.length === 0) return null;
	return (
		<Section title={texts.memory.devices}>
			<div class="stack">
				{devices.map((d) => {
					const parts: Part[] = here(o).map((i) => ({ name: i.id, amount: amountOn(i, d.name), shade: shadeOf(o, i.id) })).filter((p) => p.amount > 0);
					const claimed = parts.reduce((sum, p) => sum + p.amount, 0);
					const others = hasOwnMemory(d) ? (d.held_bytes ?? 0) : d.free_bytes === undefined ? 0 : Math.max(0, d.total_bytes - d.free_bytes - claimed);
					if (others > 0) parts.push({ name: hasOwnMemory(d) ? texts.memory.otherPrograms : texts.memory.everythingElse, amount: others, shade: free });
					const used = hasOwnMemory(d) ? claimed + others : d.free_bytes === undefined ? d.claimed_bytes : d.total_bytes - d.free_bytes;
					const badge = (
						<>
							{d.kind === "gpu" ? <Badge>{d.unified ? texts.memory.gpuSharedMemory : texts.memory.gpu}</Badge> : d.name !== "CPU" && <Badge>{texts.memory.cpu}</Badge>}
							{d.budget_bytes !== undefined && <span class="hint">{texts.memory.atMostForModels(formatBytes(d.budget_bytes))}</span>}
						</>
					);
					return <Measure key={d.name} name={d.name} badge={badge} used={used} total={d.total_bytes} parts={parts} />;
				})}
			</div>
		</Section>
	);
}

function Measure({ name, badge, used, total, parts }: { name: string; badge?: ComponentChildren; used: number; total: number; parts: readonly Part[] }) {
	return (
		<div class="card stack">
			<div class="row between">
				<span class="row">
					<strong>{name}</strong>
					{badge}
				</span>
				<span class="tabular muted">{texts.common.of(formatBytes(used), formatBytes(total))}</span>
			</div>
			<Bar label={name} parts={parts} total={total} format={formatBytes} />
			{parts.length > 0 && (
				<ul class="legend">
					{parts.map((p) => (
						<li key={p.name}>
							<span class={`swatch shade-${p.shade}`} />
							{p.name} <span class="tabular muted">{formatBytes(p.amount)}</span>
						</li>
					))}
				</ul>
			)}
		</div>
	);
}

function Instances({ of: o, onDone }: { of: Overview; onDone: () => void }) {
	const now = useNow();
	return (
		<Section title={texts.common.instances}>
			<Table<OverviewInstance>
				label={texts.common.instances}
				rows={o.instances}
				rowKey={(i) => i.id}
				columns={[
					{ title: texts.common.instance, name: true, render: (i) => <InstanceLink of={i} /> },
					{ title: texts.common.state, render: (i) => <InstanceState of={i} /> },
					{ title: texts.memory.claimed, numeric: true, minor: "phone", render: (i) => formatClaim(i) },
					{ title: texts.memory.resident, numeric: true, minor: true, render: (i) => formatBytes(i.resident_memory_bytes) },
					{ title: texts.common.requests, numeric: true, minor: true, render: (i) => texts.common.of(i.in_use, i.slots) },
					{ title: texts.common.context, numeric: true, minor: true, render: (i) => formatNumber(i.context_length) },
					{ title: texts.common.unloads, minor: true, render: (i) => (i.expires_at ? formatUntil(i.expires_at, now) : texts.common.lowerNever) },
					{ title: texts.common.actions, hideTitle: true, render: (i) => <InstanceActions of={i} onDone={onDone} /> },
				]}
				empty={
					<Empty icon="memory" title={texts.common.noModelIsLoaded}>
						<p>{texts.memory.memoryUsedOnceModel(<a href={href("models")}>{texts.common.models}</a>)}</p>
					</Empty>
				}
			/>
		</Section>
	);
}
