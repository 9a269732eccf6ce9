import { useState } from "preact/hooks";
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
import { texts } from "../texts";

/** What the chat asks with. Changes apply to the next question. */
export function ChatSettings({ model, onClose }: { model: Model | undefined; onClose: () => void }) {
	const o = useStore(options);
	return (
		<Dialog
			title={texts.chatSettings.chatSettings}
			wide
			onClose={onClose}
			onSubmit={onClose}
			actions={
				<>
					<Button onClick={resetOptions}>{texts.chatSettings.resetAll}</Button>
					<Button kind="primary" type="submit">{texts.common.done}</Button>
				</>
			}
		>
			<p class="muted">{texts.chatSettings.changesApplyNextQuestion}</p>
			<SavedSettings />
			<Presets />
			<TextArea
				label={texts.common.systemPrompt}
				hint={texts.chatSettings.appliesConversationNextQuestion}
				rows={4}
				value={o.systemPrompt}
				onInput={(systemPrompt) => changeOptions({ systemPrompt })}
			/>
			<Reasoning model={model} />
			<Numbers />
			<TextArea
				label={texts.chatSettings.stopStrings}
				hint={texts.chatSettings.oneLineAnswerEnds}
				rows={2}
				value={o.stop}
				onInput={(stop) => changeOptions({ stop })}
			/>
			<div class="fields">
				<TextField label={texts.common.draftModel} hint={texts.chatSettings.guessesTokensModelIf} value={o.draftModel} onInput={(draftModel) => changeOptions({ draftModel })} />
				<TextField
					label={texts.chatSettings.logitBias}
					hint={texts.chatSettings.biasHint}
					value={o.bias}
					error={biasError(o.bias)}
					onInput={(bias) => changeOptions({ bias })}
				/>
			</div>
			<Checkbox
				label={texts.chatSettings.storeConversationServer}
				hint={texts.chatSettings.withoutLaterQuestionsDont}
				checked={o.isStored}
				onChange={(isStored) => changeOptions({ isStored })}
			/>
			<Checkbox
				label={texts.chatSettings.titlesByTheModel}
				hint={texts.chatSettings.afterFirstAnswerIf}
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
			label={texts.chatSettings.preset}
			hint={fields.length > 0 ? fields.join("; ") : texts.chatSettings.fillsFieldsEmptyHere}
			value={o.preset}
			onChange={(preset) => changeOptions({ preset })}
			choices={[{ value: "", text: texts.common.none }, ...presets.map((p) => p.name), ...(o.preset && !chosen ? [o.preset] : [])]}
		/>
	);
}

function Reasoning({ model }: { model: Model | undefined }) {
	const o = useStore(options);
	const reasoning = model?.capabilities?.reasoning;
	if (!reasoning) return null;
	return (
		<Select
			label={texts.common.thinking}
			value={o.reasoning}
			onChange={(chosen) => changeOptions({ reasoning: chosen })}
			choices={[{ value: "", text: reasoning.default ? texts.chatSettings.default(reasoning.default) : texts.common.default }, ...reasoning.allowed_options]}
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
			<p class="muted">{texts.chatSettings.serversConfigurationAllowMcp(<code>allow plugin_mcp</code>)}</p>
		);
	} else if (!may) content = <p class="muted">{lacks("mcp.plugin")}</p>;
	else if (list.error) content = <Failure error={list.error} retry={list.reload} />;
	else if (!list.data) content = <Loading />;
	else if (list.data.servers.length === 0) {
		content = (
			<p class="muted">{texts.chatSettings.noServerConfiguredServers(<code>mcp.json</code>)}</p>
		);
	} else content = list.data.servers.map((s) => <ServerChoice key={s.label} server={s} />);
	return (
		<fieldset class="servers">
			<legend>{texts.chatSettings.toolsOfMcpServers}</legend>
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
				label={texts.chatSettings.askBeforeEachCall}
				hint={isStored ? texts.chatSettings.youAllowCallOnce : texts.chatSettings.onlyConversationsStored}
				disabled={!isStored}
				checked={isAsked}
				onChange={(yes) => changeOptions({ isAsked: yes })}
			/>
			{isAsked && approved.length > 0 && (
				<p class="row hint">
					{texts.chatSettings.alwaysAllowed(approved.map((name) => name.split(" ").at(-1)).join(", "))}
					<Button small kind="quiet" onClick={() => changeOptions({ approved: [] })}>{texts.common.askAgain}</Button>
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
						{servers[server.label] ? texts.common.toolCount(servers[server.label]?.length ?? 0) : texts.chatSettings.allTools}
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
