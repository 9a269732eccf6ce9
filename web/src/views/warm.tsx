import { formatAgo, formatBytes, formatNumber } from "../core/format";
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
import { texts } from "../texts";

type State = WarmStates["states"][number];

export function Warm() {
	const warm = useResource<WarmStates>("/api/v1/warm", { every: 10_000, events: ["model_unload.end"] });
	const states = warm.data?.states ?? [];
	return (
		<View
			title={texts.common.warmStates}
			lead={texts.warm.enginesComputedConversationsSaved}
			actions={
				states.length > 0 && (
					<Button icon="trash" onClick={() => clear(null, warm.reload)}>{texts.warm.deleteAll}</Button>
				)
			}
		>
			<Fetched from={warm}>
				{({ states }) =>
					states.length === 0 ? (
						<Empty icon="warm" title={texts.warm.noStatesAreSaved}>
							<p>{texts.warm.savedModelBeenUnused}</p>
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
		title: model ? texts.warm.deleteTheStatesOf(model) : texts.warm.deleteAllStates,
		text: <p>{texts.warm.conversationsStayOneContinues}</p>,
		action: texts.common.delete,
		danger: true,
	});
	if (!isSure) return;
	const { deleted, size_bytes } = await call<{ deleted: number; size_bytes: number }>("DELETE", "/api/v1/warm", { query: { model } });
	toast(texts.warm.ofDeleted(deleted, formatBytes(size_bytes)));
	onDone();
}

function ByModel({ states, onDone }: { states: readonly State[]; onDone: () => void }) {
	const sums = new Map<string, { model: string; n: number; bytes: number; tokens: number }>();
	for (const s of states) {
		const sum = sums.get(s.model) ?? { model: s.model, n: 0, bytes: 0, tokens: 0 };
		sums.set(s.model, { ...sum, n: sum.n + 1, bytes: sum.bytes + s.size_bytes, tokens: sum.tokens + s.tokens });
	}
	return (
		<Section title={texts.common.byModel}>
			<Table
				label={texts.warm.statesByModel}
				rows={[...sums.values()]}
				rowKey={(s) => s.model}
				columns={[
					{ title: texts.common.model, name: true, render: (s) => <a href={href("models", s.model)}><Key of={s.model} /></a> },
					{ title: texts.warm.states, numeric: true, minor: "phone", render: (s) => formatNumber(s.n) },
					{ title: texts.common.tokens, numeric: true, render: (s) => formatNumber(s.tokens) },
					{ title: texts.common.size, numeric: true, render: (s) => formatBytes(s.bytes) },
					{
						title: texts.common.actions,
						hideTitle: true,
						render: (s) => (
							<span class="actions">
								<Button small icon="trash" onClick={() => clear(s.model, onDone)} aria-label={texts.warm.deleteTheStatesOf(s.model)}>{texts.common.deleteDialog}</Button>
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
		<Section title={texts.warm.states}>
			<Table
				label={texts.warm.states}
				rows={states}
				rowKey={(s) => `${s.model} ${s.owner} ${s.created_at} ${s.tokens} ${s.size_bytes}`}
				columns={[
					{ title: texts.common.model, name: true, render: (s) => <Key of={s.model} /> },
					{ title: texts.warm.owner, minor: true, render: (s) => s.owner || <span class="muted">{texts.warm.anybody}</span> },
					{ title: texts.common.tokens, numeric: true, render: (s) => formatNumber(s.tokens) },
					{ title: texts.common.size, numeric: true, render: (s) => formatBytes(s.size_bytes) },
					{ title: texts.warm.saved, minor: true, render: (s) => formatAgo(s.created_at, now) },
					{ title: texts.common.lastUsed, render: (s) => formatAgo(s.last_used_at, now) },
				]}
			/>
		</Section>
	);
}
