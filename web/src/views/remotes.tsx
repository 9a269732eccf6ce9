import { formatNumber, formatTime } from "../core/format";
import type { ModelDetails, OverviewInstance, OverviewRemote, Place } from "../core/types";
import { Badge, type Tone } from "../ui/states";
import { Table } from "../ui/Table";
import { Section } from "../ui/View";
import { texts } from "../texts";

const tones: Record<OverviewRemote["status"], Tone> = { connected: "good", connecting: "busy", unreachable: "bad" };
const words: Record<OverviewRemote["status"], string> = { connected: texts.common.connected, connecting: texts.common.connecting, unreachable: texts.common.unreachable };

/** The servers whose models this one serves, if there are any. */
export function Remotes({ all }: { all: readonly OverviewRemote[] }) {
	if (all.length === 0) return null;
	return (
		<Section title={texts.remotes.remotes}>
			<Table<OverviewRemote>
				label={texts.remotes.remotes}
				rows={all}
				rowKey={(r) => r.name}
				columns={[
					{
						title: texts.common.remote,
						name: true,
						render: (r) => (
							<>
								<strong>{r.name}</strong>
								{r.url && <div class="mono muted">{r.url}</div>}
							</>
						),
					},
					{
						title: texts.common.state,
						render: (r) => (
							<>
								<Badge tone={tones[r.status]}>{words[r.status]}</Badge>
								{r.error && <div class="error-text">{r.error}</div>}
							</>
						),
					},
					{ title: texts.remotes.since, minor: true, render: (r) => formatTime(r.since) },
					{ title: texts.remotes.kind, minor: "phone", render: (r) => [r.kind, r.version].filter(Boolean).join(" ") || "–" },
					{ title: texts.common.models, numeric: true, render: (r) => formatNumber(r.models) },
					{ title: texts.remotes.preference, numeric: true, minor: true, render: (r) => r.prefer },
				]}
			/>
		</Section>
	);
}

/** Where a model is, if other servers have it. */
export function Places({ of: m, instances }: { of: ModelDetails; instances: readonly OverviewInstance[] }) {
	if (!m.places || m.places.length === 0) return null;
	const local = m.files.length > 0 ? [{ remote: "", instance_id: m.key, loaded: instances.some((i) => !i.remote), reachable: true }] : [];
	return (
		<Section title={texts.remotes.places}>
			<Table<Place>
				label={texts.remotes.places}
				rows={[...local, ...m.places]}
				rowKey={(p) => p.remote}
				columns={[
					{ title: texts.remotes.place, name: true, render: (p) => p.remote || texts.remotes.thisMachine },
					{ title: texts.common.state, render: (p) => <PlaceState of={p} /> },
					{ title: texts.common.name, minor: "phone", name: true, render: (p) => (p.remote ? <span class="mono">{p.instance_id}</span> : "–") },
				]}
			/>
			<p class="hint gap">{texts.remotes.requestTakesFirstPlace}</p>
		</Section>
	);
}

function PlaceState({ of: p }: { of: Place }) {
	if (!p.reachable) return <Badge tone="bad">{texts.common.unreachable}</Badge>;
	return p.loaded ? <Badge tone="good">{texts.common.loaded}</Badge> : <span class="muted">{texts.common.notLoaded}</span>;
}
