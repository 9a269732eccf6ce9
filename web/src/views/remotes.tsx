import { formatNumber, formatTime } from "../core/format";
import type { ModelDetails, OverviewInstance, OverviewRemote, Place } from "../core/types";
import { Badge, type Tone } from "../ui/states";
import { Table } from "../ui/Table";
import { Section } from "../ui/View";

const tones: Record<OverviewRemote["status"], Tone> = { connected: "good", connecting: "busy", unreachable: "bad" };
const words: Record<OverviewRemote["status"], string> = { connected: "Connected", connecting: "Connecting", unreachable: "Unreachable" };

/** The servers whose models this one serves, if there are any. */
export function Remotes({ all }: { all: readonly OverviewRemote[] }) {
	if (all.length === 0) return null;
	return (
		<Section title="Remotes">
			<Table<OverviewRemote>
				label="Remotes"
				rows={all}
				rowKey={(r) => r.name}
				columns={[
					{
						title: "Remote",
						name: true,
						render: (r) => (
							<>
								<strong>{r.name}</strong>
								{r.url && <div class="mono muted">{r.url}</div>}
							</>
						),
					},
					{
						title: "State",
						render: (r) => (
							<>
								<Badge tone={tones[r.status]}>{words[r.status]}</Badge>
								{r.error && <div class="error-text">{r.error}</div>}
							</>
						),
					},
					{ title: "Since", minor: true, render: (r) => formatTime(r.since) },
					{ title: "Kind", minor: "phone", render: (r) => [r.kind, r.version].filter(Boolean).join(" ") || "–" },
					{ title: "Models", numeric: true, render: (r) => formatNumber(r.models) },
					{ title: "Preference", numeric: true, minor: true, render: (r) => r.prefer },
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
		<Section title="Places">
			<Table<Place>
				label="Places"
				rows={[...local, ...m.places]}
				rowKey={(p) => p.remote}
				columns={[
					{ title: "Place", name: true, render: (p) => p.remote || "This machine" },
					{ title: "State", render: (p) => <PlaceState of={p} /> },
					{ title: "Name", minor: "phone", name: true, render: (p) => (p.remote ? <span class="mono">{p.instance_id}</span> : "–") },
				]}
			/>
			<p class="hint gap">A request takes the first place that can serve it; the name of a place asks that one alone.</p>
		</Section>
	);
}

function PlaceState({ of: p }: { of: Place }) {
	if (!p.reachable) return <Badge tone="bad">Unreachable</Badge>;
	return p.loaded ? <Badge tone="good">Loaded</Badge> : <span class="muted">Not loaded</span>;
}
