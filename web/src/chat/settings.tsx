import { useState } from "preact/hooks";
import { plural } from "../core/format";
import { useResource } from "../core/resource";
import { lacks, session, useCan } from "../core/session";
import { useStore } from "../core/store";
import type { Model } from "../core/types";
import { segment } from "../core/http";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Checkbox, Select, TextArea, TextField } from "../ui/Field";
import { Failure, Loading } from "../ui/states";
import { SavedSettings } from "./presets";
import { biasError, changeOptions, numberError, numberFields, numberNames, options, resetOptions } from "./options";

/** What the chat asks with. Changes apply to the next question. */
export function ChatSettings({ model, onClose }: { model: Model | undefined; onClose: () => void }) {
	const o = useStore(options);
	return (
		<Dialog
			title="Chat settings"
			wide
			onClose={onClose}
			onSubmit={onClose}
			actions={
				<>
					<Button onClick={resetOptions}>Reset all</Button>
					<Button kind="primary" type="submit">
						Done
					</Button>
				</>
			}
		>
			<p class="muted">Changes apply from the next question on. Empty fields mean the server's defaults.</p>
			<SavedSettings />
			<Presets />
			<TextArea
				label="System prompt"
				hint="Applies to the conversation from the next question on."
				rows={4}
				value={o.systemPrompt}
				onInput={(systemPrompt) => changeOptions({ systemPrompt })}
			/>
			<Reasoning model={model} />
			<Numbers />
			<TextArea
				label="Stop strings"
				hint="One a line. The answer ends before any of them."
				rows={2}
				value={o.stop}
				onInput={(stop) => changeOptions({ stop })}
			/>
			<div class="fields">
				<TextField label="Draft model" hint="guesses tokens for the model, if this loads it" value={o.draftModel} onInput={(draftModel) => changeOptions({ draftModel })} />
				<TextField
					label="Logit bias"
					hint={'JSON: token ids and how much likelier they are, such as {"1234": -100}'}
					value={o.bias}
					error={biasError(o.bias)}
					onInput={(bias) => changeOptions({ bias })}
				/>
			</div>
			<Checkbox
				label="Store the conversation on the server"
				hint="Without it, later questions don't know of the answer."
				checked={o.isStored}
				onChange={(isStored) => changeOptions({ isStored })}
			/>
			<Checkbox
				label="Titles by the model"
				hint="After the first answer, if the model is idle and has room for another prompt."
				checked={o.hasTitles}
				onChange={(hasTitles) => changeOptions({ hasTitles })}
			/>
			<Servers />
		</Dialog>
	);
}

function Presets() {
	const o = useStore(options);
	const { settings } = useStore(session);
	const presets = settings?.presets ?? [];
	if (presets.length === 0 && !o.preset) return null;
	const chosen = presets.find((p) => p.name === o.preset);
	const fields = Object.entries(chosen?.fields ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
	return (
		<Select
			label="Preset"
			hint={fields.length > 0 ? fields.join("; ") : "Fills the fields that are empty here."}
			value={o.preset}
			onChange={(preset) => changeOptions({ preset })}
			choices={[{ value: "", text: "None" }, ...presets.map((p) => p.name), ...(o.preset && !chosen ? [o.preset] : [])]}
		/>
	);
}

function Reasoning({ model }: { model: Model | undefined }) {
	const o = useStore(options);
	const reasoning = model?.capabilities?.reasoning;
	if (!reasoning) return null;
	return (
		<Select
			label="Thinking"
			value={o.reasoning}
			onChange={(chosen) => changeOptions({ reasoning: chosen })}
			choices={[{ value: "", text: reasoning.default ? `Default (${reasoning.default})` : "Default" }, ...reasoning.allowed_options]}
		/>
	);
}

function Numbers() {
	const o = useStore(options);
	return (
		<div class="fields">
			{numberNames.map((name) => {
				const typed = o.numbers[name] ?? "";
				const { label, hint } = numberFields[name];
				return (
					<TextField
						key={name}
						label={label}
						hint={hint}
						inputMode="decimal"
						value={typed}
						error={numberError(name, typed)}
						onInput={(value) => changeOptions({ numbers: { ...options.value.numbers, [name]: value } })}
					/>
				);
			})}
		</div>
	);
}

interface ServerEntry {
	label: string;
	status: string;
	error?: string;
}

interface ServerTools {
	tools?: { name: string; title?: string; description?: string }[];
}

/** The MCP servers whose tools the model may use. */
function Servers() {
	const may = useCan("mcp.plugin");
	const { settings } = useStore(session);
	const isOpen = settings?.allow.plugin_mcp === true;
	const list = useResource<{ servers: ServerEntry[] }>(may && isOpen ? "/api/v1/mcp" : null);
	let content;
	if (!isOpen) {
		content = (
			<p class="muted">
				The server's configuration doesn't allow MCP tools: <code>allow plugin_mcp</code> among its options does.
			</p>
		);
	} else if (!may) content = <p class="muted">{lacks("mcp.plugin")}</p>;
	else if (list.error) content = <Failure error={list.error} retry={list.reload} />;
	else if (!list.data) content = <Loading />;
	else if (list.data.servers.length === 0) {
		content = (
			<p class="muted">
				No server is configured. <code>mcp.json</code> in the server's home lists them.
			</p>
		);
	} else content = list.data.servers.map((s) => <ServerChoice key={s.label} server={s} />);
	return (
		<fieldset class="servers">
			<legend>Tools of MCP servers</legend>
			{content}
			{may && isOpen && <Approval />}
		</fieldset>
	);
}

/** Whether calls have to be approved. */
function Approval() {
	const { isAsked, isStored, approved } = useStore(options);
	return (
		<div class="approval">
			<Checkbox
				label="Ask before each call"
				hint={isStored ? "You allow a call once, always for its tool, or not at all." : "Only in conversations that are stored."}
				disabled={!isStored}
				checked={isAsked}
				onChange={(yes) => changeOptions({ isAsked: yes })}
			/>
			{isAsked && approved.length > 0 && (
				<p class="row hint">
					Always allowed: {approved.map((name) => name.split(" ").at(-1)).join(", ")}
					<Button small kind="quiet" onClick={() => changeOptions({ approved: [] })}>
						Ask again
					</Button>
				</p>
			)}
		</div>
	);
}

function ServerChoice({ server }: { server: ServerEntry }) {
	const { servers } = useStore(options);
	const [isOpen, setOpen] = useState(false);
	const isChosen = server.label in servers;
	const choose = (yes: boolean) => {
		const { [server.label]: _, ...others } = options.value.servers;
		changeOptions({ servers: yes ? { ...others, [server.label]: null } : others });
	};
	return (
		<div class="server-choice">
			<div class="row">
				<Checkbox label={server.label} checked={isChosen} onChange={choose} />
				{isChosen && (
					<Button small kind="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
						{servers[server.label] ? plural(servers[server.label]?.length ?? 0, "tool") : "All tools"}
					</Button>
				)}
				{server.error && <span class="error-text">{server.error}</span>}
			</div>
			{isChosen && isOpen && <Tools label={server.label} />}
		</div>
	);
}

function Tools({ label }: { label: string }) {
	const server = useResource<ServerTools>("/api/v1/mcp/" + segment(label));
	const { servers } = useStore(options);
	if (server.error) return <Failure error={server.error} retry={server.reload} />;
	if (!server.data) return <Loading />;
	const all = (server.data.tools ?? []).map((t) => t.name);
	const allowed = servers[label] ?? all;
	const allow = (name: string, yes: boolean) => {
		const before = options.value.servers[label] ?? all;
		const chosen = all.filter((n) => (n === name ? yes : before.includes(n)));
		changeOptions({ servers: { ...options.value.servers, [label]: chosen.length === all.length ? null : chosen } });
	};
	return (
		<div class="tools">
			{(server.data.tools ?? []).map((t) => (
				<Checkbox
					key={t.name}
					label={t.name}
					hint={(t.description ?? t.title ?? "").slice(0, 200)}
					checked={allowed.includes(t.name)}
					onChange={(yes) => allow(t.name, yes)}
				/>
			))}
		</div>
	);
}
