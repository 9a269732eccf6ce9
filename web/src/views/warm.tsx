import { formatAgo, formatBytes, formatNumber, plural } from "../core/format";
import { call } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import type { WarmStates } from "../core/types";
import { Button } from "../ui/Button";
import { confirm } from "../ui/confirm";
import { Empty, Fetched } from "../ui/states";
import { Key } from "../ui/Key";
import { Table } from "../ui/Table";
import { toast } from "../ui/toast";
import { useNow } from "../ui/useNow";
import { Section, View } from "../ui/View";

type State = WarmStates["states"][number];

export function Warm() {
	const warm = useResource<WarmStates>("/api/v1/warm", { every: 10_000, events: ["model_unload.end"] });
	const states = warm.data?.states ?? [];
	return (
		<View
			title="Warm states"
			lead="What engines have computed of conversations, saved to files. A conversation with a state continues without processing its prompt again."
			actions={
				states.length > 0 && (
					<Button icon="trash" onClick={() => clear(null, warm.reload)}>
						Delete all…
					</Button>
				)
			}
		>
			<Fetched from={warm}>
				{({ states }) =>
					states.length === 0 ? (
						<Empty icon="warm" title="No states are saved">
							<p>They are saved when a model has been unused for a minute, or is unloaded. Short conversations aren't saved.</p>
						</Empty>
					) : (
						<>
							<ByModel states={states} onDone={warm.reload} />
							<All states={states} />
						</>
					)
				}
			</Fetched>
		</View>
	);
}

async function clear(model: string | null, onDone: () => void): Promise<void> {
	const isSure = await confirm({
		title: model ? `Delete the states of ${model}` : "Delete all states",
		text: <p>The conversations stay. When one continues, its prompt is processed again.</p>,
		action: "Delete",
		danger: true,
	});
	if (!isSure) return;
	const { deleted, size_bytes } = await call<{ deleted: number; size_bytes: number }>("DELETE", "/api/v1/warm", { query: { model } });
	toast(`${plural(deleted, "state")} of ${formatBytes(size_bytes)} deleted.`);
	onDone();
}

function ByModel({ states, onDone }: { states: readonly State[]; onDone: () => void }) {
	const sums = new Map<string, { model: string; n: number; bytes: number; tokens: number }>();
	for (const s of states) {
		const sum = sums.get(s.model) ?? { model: s.model, n: 0, bytes: 0, tokens: 0 };
		sums.set(s.model, { ...sum, n: sum.n + 1, bytes: sum.bytes + s.size_bytes, tokens: sum.tokens + s.tokens });
	}
	return (
		<Section title="By model">
			<Table
				label="States by model"
				rows={[...sums.values()]}
				rowKey={(s) => s.model}
				columns={[
					{ title: "Model", name: true, render: (s) => <a href={href("models", s.model)}><Key of={s.model} /></a> },
					{ title: "States", numeric: true, minor: "phone", render: (s) => formatNumber(s.n) },
					{ title: "Tokens", numeric: true, render: (s) => formatNumber(s.tokens) },
					{ title: "Size", numeric: true, render: (s) => formatBytes(s.bytes) },
					{
						title: "Actions",
						hideTitle: true,
						render: (s) => (
							<span class="actions">
								<Button small icon="trash" onClick={() => clear(s.model, onDone)} aria-label={`Delete the states of ${s.model}`}>
									Delete…
								</Button>
							</span>
						),
					},
				]}
			/>
		</Section>
	);
}

function All({ states }: { states: readonly State[] }) {
	const now = useNow();
	return (
		<Section title="States">
			<Table
				label="States"
				rows={states}
				rowKey={(s) => `${s.model} ${s.owner} ${s.created_at} ${s.tokens} ${s.size_bytes}`}
				columns={[
					{ title: "Model", name: true, render: (s) => <Key of={s.model} /> },
					{ title: "Owner", minor: true, render: (s) => s.owner || <span class="muted">anybody</span> },
					{ title: "Tokens", numeric: true, render: (s) => formatNumber(s.tokens) },
					{ title: "Size", numeric: true, render: (s) => formatBytes(s.size_bytes) },
					{ title: "Saved", minor: true, render: (s) => formatAgo(s.created_at, now) },
					{ title: "Last used", render: (s) => formatAgo(s.last_used_at, now) },
				]}
			/>
		</Section>
	);
}
