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
import { texts } from "../texts";

interface Change {
	title: string;
	text: string;
}

export function Settings() {
	const settings = useResource<All>("/api/v1/settings");
	const [change, setChange] = useState<Change | null>(null);
	const file = settings.data?.configuration?.file;
	return (
		<View title={texts.common.settings} lead={texts.settings.forceSettingsChangedCaddyfile}>
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
		<Dialog title={change.title} onClose={onClose} actions={<Button onClick={onClose}>{texts.common.close}</Button>}>
			<p>
				{file ? (
					<>{texts.settings.putIntoChangeLine(<code>{file}</code>, <code>lm</code>)}</>
				) : (
					<>{texts.settings.serverRunsWithoutCaddyfile(<code>Caddyfile</code>)}</>
				)}
			</p>
			<Code block text={change.text} label={texts.settings.linesForTheCaddyfile} />
			<p>{texts.settings.applyIfErrorOld}</p>
			<Code text={file ? `lmcaddy reload --config ${/^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`}` : "lmcaddy run --config Caddyfile"} label={texts.settings.command} />
		</Dialog>
	);
}

function Gates({ of: s, onChange }: { of: All; onChange: (c: Change) => void }) {
	return (
		<Section title={texts.settings.gates}>
			<Table<Gate>
				label={texts.settings.gates}
				rows={gates}
				rowKey={(g) => g.name}
				columns={[
					{
						title: texts.settings.gate,
						render: (g) => (
							<>
								{g.title} <span class="mono muted">{g.name}</span>
								<div class="hint">{g.about}</div>
							</>
						),
					},
					{ title: texts.common.state, render: (g) => (s.allow[g.name] ? <Badge tone="good">{texts.settings.open}</Badge> : <Badge>{texts.settings.closed}</Badge>) },
					{
						title: texts.common.actions,
						hideTitle: true,
						render: (g) => (
							<span class="actions">
								<Button small onClick={() => onChange({ title: texts.settings.howToChange(g.name), text: gateLines(g.name) })} aria-label={texts.settings.howToChange(g.name)}>{texts.settings.howToChangeWord}</Button>
							</span>
						),
					},
				]}
			/>
		</Section>
	);
}

const sources: Record<Setting["source"], string> = { file: texts.settings.caddyfile, environment: texts.settings.environment, default: texts.common.default };

function SettingTable({ label, rows, onChange }: { label: string; rows: readonly Setting[]; onChange?: (c: Change) => void }) {
	return (
		<Table<Setting>
			label={label}
			rows={rows}
			rowKey={(s) => s.name}
			columns={[
				{
					title: texts.settings.setting,
					render: (s) => (
						<>
							<span class="mono">{s.name}</span>
							{onChange && options[s.name] && <div class="hint">{options[s.name]?.about}</div>}
						</>
					),
				},
				{ title: texts.settings.value, name: true, render: (s) => s.value || <span class="muted">{texts.common.lowerNone}</span> },
				{ title: texts.common.source, minor: true, render: (s) => <Badge tone={s.source === "default" ? "neutral" : "busy"}>{sources[s.source]}</Badge> },
				...(onChange
					? [
							{
								title: texts.common.actions,
								hideTitle: true,
								render: (s: Setting) =>
									options[s.name] && (
										<span class="actions">
											<Button small onClick={() => onChange({ title: texts.settings.howToChange(s.name), text: lines(s.name) })} aria-label={texts.settings.howToChange(s.name)}>{texts.settings.howToChangeWord}</Button>
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
			<Section title={texts.common.server}>
				<div class="card">
					<Facts>
						<Fact name={texts.settings.caddyfile}>{c.file ? <span class="mono">{c.file}</span> : texts.settings.noneLmcaddyServe}</Fact>
						<Fact name={texts.settings.home}>
							<span class="mono">{c.home}</span>
						</Fact>
						<Fact name={texts.settings.otherModelsFolders}>{c.models_dirs.length > 0 && <span class="mono">{c.models_dirs.join(", ")}</span>}</Fact>
					</Facts>
				</div>
			</Section>
			<Section title={texts.settings.options} actions={<TextField label={texts.settings.searchTheOptions} hideLabel type="search" placeholder={texts.common.search} value={search} onInput={setSearch} />}>
				<SettingTable label={texts.settings.options} rows={found} onChange={onChange} />
				{found.length === 0 && <p class="hint">{texts.settings.noOptionMatches}</p>}
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
	const title = { engine: texts.common.engine, model: texts.common.model, remote: texts.common.remote }[word];
	return (
		<>
			{all.map(({ name, settings }) => (
				<Section key={name} title={`${title} ${name}`}>
					<SettingTable label={`${title} ${name}`} rows={settings} />
					<p class="hint gap">{texts.settings.setBlockCaddyfile(<code>{`${word} ${(word === "remote" && settings.find((s) => s.name === "url")?.value) || name}`}</code>)}</p>
				</Section>
			))}
		</>
	);
}

function Sites({ of: c }: { of: Configuration }) {
	const yes = (is: boolean) => (is ? texts.common.yes : texts.common.no);
	return (
		<Section title={texts.settings.sites}>
			<div class="cards">
				{c.sites.map((s) => (
					<div key={s.server} class="card stack">
						<h3 class="mono">{s.addresses.join(", ")}</h3>
						<Facts>
							<Fact name={texts.settings.names}>{s.hosts.join(", ") || texts.common.all}</Fact>
							<Fact name={texts.settings.tls}>{yes(s.tls)}</Fact>
							<Fact name={texts.settings.needsAToken}>{yes(s.authentication)}</Fact>
							<Fact name={texts.settings.reachableFromOtherMachines}>{yes(s.reachable)}</Fact>
							<Fact name={texts.settings.apiFamilies}>{s.dialects.join(", ") || texts.common.all}</Fact>
							<Fact name={texts.settings.thisPage}>{yes(s.page)}</Fact>
							<Fact name={texts.settings.webPagesMayUse}>{s.cors.join(", ") || texts.common.none}</Fact>
							<Fact name={texts.settings.largestBody}>{formatBytes(s.max_body_bytes)}</Fact>
						</Facts>
						{s.reachable && !s.authentication && <Note kind="warning">{texts.settings.anybodyWhoCanReach}</Note>}
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
		{ name: "idle_ttl", value: s.idle_ttl_seconds ? formatDuration(s.idle_ttl_seconds) : texts.settings.forever },
		{ name: "max_loaded", value: s.max_loaded ? String(s.max_loaded) : texts.settings.last0LimitedOnlyMemory },
		{ name: "queue", value: s.queue ? String(s.queue) : texts.settings.unlimited },
		{ name: "list_models", value: s.list_models },
		{ name: "reasoning_field", value: s.reasoning_field },
	].map((row) => ({ ...row, source: "default" as const }));
	return (
		<Section title={texts.settings.options}>
			<Note>
				<span>{texts.settings.administratorsSeeAll} {lacks("admin")}</span>
				<Button onClick={() => offerToken("")}>{texts.common.enterAToken}</Button>
			</Note>
			<Table<Setting>
				label={texts.settings.options}
				rows={rows}
				rowKey={(r) => r.name}
				columns={[
					{
						title: texts.settings.setting,
						render: (r) => (
							<>
								<span class="mono">{r.name}</span>
								<div class="hint">{options[r.name]?.about}</div>
							</>
						),
					},
					{ title: texts.settings.value, render: (r) => r.value },
					{
						title: texts.common.actions,
						hideTitle: true,
						render: (r) => (
							<span class="actions">
								<Button small onClick={() => onChange({ title: texts.settings.howToChange(r.name), text: lines(r.name) })} aria-label={texts.settings.howToChange(r.name)}>{texts.settings.howToChangeWord}</Button>
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
		<Section title={texts.settings.presets}>
			<ul class="list">
				{presets.map((p) => (
					<li key={p.name} class="stack">
						<h3 class="mono">{p.name}</h3>
						{p.fields && <Code block text={JSON.stringify(p.fields, null, 2)} label={texts.settings.fieldsOfName(p.name)} />}
					</li>
				))}
			</ul>
		</Section>
	);
}
