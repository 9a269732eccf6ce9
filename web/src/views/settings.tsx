import { useState } from "preact/hooks";
import { gateLines, gates, lines, type Gate } from "../core/caddyfile";
import { formatBytes, formatDuration } from "../core/format";
import { options } from "../core/options";
import { useResource } from "../core/resource";
import { lacks, offerToken } from "../core/session";
import type { Configuration, Setting, Settings as All } from "../core/types";
import { Button } from "../ui/Button";
import { Code } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Badge, Fact, Facts, Fetched, Note } from "../ui/states";
import { Table } from "../ui/Table";
import { Section, View } from "../ui/View";

interface Change {
	title: string;
	text: string;
}

export function Settings() {
	const settings = useResource<All>("/api/v1/settings");
	const [change, setChange] = useState<Change | null>(null);
	const file = settings.data?.configuration?.file;
	return (
		<View title="Settings" lead="What is in force. Settings are changed in the Caddyfile; a reload keeps models loaded and streams running.">
			<Fetched from={settings}>
				{(s) => (
					<>
						<Gates of={s} onChange={setChange} />
						{s.configuration ? <Whole of={s.configuration} onChange={setChange} /> : <Part of={s} onChange={setChange} />}
						{s.presets && s.presets.length > 0 && <Presets of={s.presets} />}
					</>
				)}
			</Fetched>
			{change && <HowTo change={change} file={file} onClose={() => setChange(null)} />}
		</View>
	);
}

/** How a setting is changed, and how the change comes into force. */
function HowTo({ change, file, onClose }: { change: Change; file?: string; onClose: () => void }) {
	return (
		<Dialog title={change.title} onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
			<p>
				{file ? (
					<>
						Put this into <code>{file}</code>, or change the line that is there. What is inside <code>lm</code> goes into the block of this name, if there is one.
					</>
				) : (
					<>
						The server runs without a Caddyfile, or it can't be seen with this token. Put this at the beginning of a <code>Caddyfile</code>; its sites follow.
					</>
				)}
			</p>
			<Code block text={change.text} label="lines for the Caddyfile" />
			<p>Then apply it. If there is an error, the old settings stay in force.</p>
			<Code text={file ? `lmcaddy reload --config ${/^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`}` : "lmcaddy run --config Caddyfile"} label="command" />
		</Dialog>
	);
}

function Gates({ of: s, onChange }: { of: All; onChange: (c: Change) => void }) {
	return (
		<Section title="Gates">
			<Table<Gate>
				label="Gates"
				rows={gates}
				rowKey={(g) => g.name}
				columns={[
					{
						title: "Gate",
						render: (g) => (
							<>
								{g.title} <span class="mono muted">{g.name}</span>
								<div class="hint">{g.about}</div>
							</>
						),
					},
					{ title: "State", render: (g) => (s.allow[g.name] ? <Badge tone="good">Open</Badge> : <Badge>Closed</Badge>) },
					{
						title: "Actions",
						hideTitle: true,
						render: (g) => (
							<span class="actions">
								<Button small onClick={() => onChange({ title: `How to change ${g.name}`, text: gateLines(g.name) })} aria-label={`How to change ${g.name}`}>
									How to change
								</Button>
							</span>
						),
					},
				]}
			/>
		</Section>
	);
}

const sources: Record<Setting["source"], string> = { file: "Caddyfile", environment: "Environment", default: "Default" };

function SettingTable({ label, rows, onChange }: { label: string; rows: readonly Setting[]; onChange?: (c: Change) => void }) {
	return (
		<Table<Setting>
			label={label}
			rows={rows}
			rowKey={(s) => s.name}
			columns={[
				{
					title: "Setting",
					render: (s) => (
						<>
							<span class="mono">{s.name}</span>
							{onChange && options[s.name] && <div class="hint">{options[s.name]?.about}</div>}
						</>
					),
				},
				{ title: "Value", name: true, render: (s) => s.value || <span class="muted">none</span> },
				{ title: "Source", minor: true, render: (s) => <Badge tone={s.source === "default" ? "neutral" : "busy"}>{sources[s.source]}</Badge> },
				...(onChange
					? [
							{
								title: "Actions",
								hideTitle: true,
								render: (s: Setting) =>
									options[s.name] && (
										<span class="actions">
											<Button small onClick={() => onChange({ title: `How to change ${s.name}`, text: lines(s.name) })} aria-label={`How to change ${s.name}`}>
												How to change
											</Button>
										</span>
									),
							},
						]
					: []),
			]}
		/>
	);
}

/** What administrators see. */
function Whole({ of: c, onChange }: { of: Configuration; onChange: (c: Change) => void }) {
	const [search, setSearch] = useState("");
	const found = c.settings.filter((s) => `${s.name} ${s.value} ${options[s.name]?.about ?? ""}`.toLowerCase().includes(search.trim().toLowerCase()));
	return (
		<>
			<Section title="Server">
				<div class="card">
					<Facts>
						<Fact name="Caddyfile">{c.file ? <span class="mono">{c.file}</span> : "None: lmcaddy serve"}</Fact>
						<Fact name="Home">
							<span class="mono">{c.home}</span>
						</Fact>
						<Fact name="Other models folders">{c.models_dirs.length > 0 && <span class="mono">{c.models_dirs.join(", ")}</span>}</Fact>
					</Facts>
				</div>
			</Section>
			<Section title="Options" actions={<TextField label="Search the options" hideLabel type="search" placeholder="Search" value={search} onInput={setSearch} />}>
				<SettingTable label="Options" rows={found} onChange={onChange} />
				{found.length === 0 && <p class="hint">No option matches.</p>}
			</Section>
			<Sites of={c} />
			<Blocks word="engine" all={c.engines} />
			<Blocks word="model" all={c.models} />
			<Blocks word="remote" all={c.remotes ?? []} />
		</>
	);
}

/** The options of engines, models or remotes, which have blocks of their own. */
function Blocks({ word, all }: { word: "engine" | "model" | "remote"; all: Configuration["engines"] }) {
	const title = { engine: "Engine", model: "Model", remote: "Remote" }[word];
	return (
		<>
			{all.map(({ name, settings }) => (
				<Section key={name} title={`${title} ${name}`}>
					<SettingTable label={`${title} ${name}`} rows={settings} />
					<p class="hint gap">
						They are set in the block <code>{`${word} ${(word === "remote" && settings.find((s) => s.name === "url")?.value) || name}`}</code> of the Caddyfile.
					</p>
				</Section>
			))}
		</>
	);
}

function Sites({ of: c }: { of: Configuration }) {
	const yes = (is: boolean) => (is ? "Yes" : "No");
	return (
		<Section title="Sites">
			<div class="cards">
				{c.sites.map((s) => (
					<div key={s.server} class="card stack">
						<h3 class="mono">{s.addresses.join(", ")}</h3>
						<Facts>
							<Fact name="Names">{s.hosts.join(", ") || "All"}</Fact>
							<Fact name="TLS">{yes(s.tls)}</Fact>
							<Fact name="Needs a token">{yes(s.authentication)}</Fact>
							<Fact name="Reachable from other machines">{yes(s.reachable)}</Fact>
							<Fact name="API families">{s.dialects.join(", ") || "All"}</Fact>
							<Fact name="This page">{yes(s.page)}</Fact>
							<Fact name="Web pages that may use it">{s.cors.join(", ") || "None"}</Fact>
							<Fact name="Largest body">{formatBytes(s.max_body_bytes)}</Fact>
						</Facts>
						{s.reachable && !s.authentication && <Note kind="warning">Anybody who can reach this site can use the models.</Note>}
					</div>
				))}
			</div>
		</Section>
	);
}

/** What everybody sees. */
function Part({ of: s, onChange }: { of: All; onChange: (c: Change) => void }) {
	const rows: Setting[] = [
		{ name: "jit", value: s.jit ? "on" : "off" },
		{ name: "idle_ttl", value: s.idle_ttl_seconds ? formatDuration(s.idle_ttl_seconds) : "0 (forever)" },
		{ name: "max_loaded", value: s.max_loaded ? String(s.max_loaded) : "0 (limited only by memory)" },
		{ name: "queue", value: s.queue ? String(s.queue) : "0 (unlimited)" },
		{ name: "list_models", value: s.list_models },
		{ name: "reasoning_field", value: s.reasoning_field },
	].map((row) => ({ ...row, source: "default" as const }));
	return (
		<Section title="Options">
			<Note>
				<span>Administrators see all options and the sites. {lacks("admin")}</span>
				<Button onClick={() => offerToken("")}>Enter a token</Button>
			</Note>
			<Table<Setting>
				label="Options"
				rows={rows}
				rowKey={(r) => r.name}
				columns={[
					{
						title: "Setting",
						render: (r) => (
							<>
								<span class="mono">{r.name}</span>
								<div class="hint">{options[r.name]?.about}</div>
							</>
						),
					},
					{ title: "Value", render: (r) => r.value },
					{
						title: "Actions",
						hideTitle: true,
						render: (r) => (
							<span class="actions">
								<Button small onClick={() => onChange({ title: `How to change ${r.name}`, text: lines(r.name) })} aria-label={`How to change ${r.name}`}>
									How to change
								</Button>
							</span>
						),
					},
				]}
			/>
		</Section>
	);
}

function Presets({ of: presets }: { of: NonNullable<All["presets"]> }) {
	return (
		<Section title="Presets">
			<ul class="list">
				{presets.map((p) => (
					<li key={p.name} class="stack">
						<h3 class="mono">{p.name}</h3>
						{p.fields && <Code block text={JSON.stringify(p.fields, null, 2)} label={`fields of ${p.name}`} />}
					</li>
				))}
			</ul>
		</Section>
	);
}
