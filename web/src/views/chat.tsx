import { useEffect, useState } from "preact/hooks";
import { askAgain, chat, newChat, openConversation, setModel, stop, type Chat } from "../chat/chat";
import { Composer } from "../chat/composer";
import { asJSON, asMarkdown, save } from "../chat/export";
import { changeOptions, numberNames, options, type Options } from "../chat/options";
import { edit, otherModelFor } from "../chat/draft";
import { KeyHelp, useKeys } from "../chat/keys";
import { ModelChoice, ModelPicker } from "../chat/modelpicker";
import { ChatSettings } from "../chat/settings";
import { Sidebar } from "../chat/sidebar";
import { path } from "../chat/tree";
import type { Turn } from "../chat/tree";
import { Turns } from "../chat/turns";
import { isAbort } from "../core/http";
import { useResource } from "../core/resource";
import { replace, setQuery, useRoute } from "../core/router";
import { useStore } from "../core/store";
import type { Model, Models } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { focusMain, focusMainLater } from "../ui/focus";
import { Failure, Loading, Note } from "../ui/states";
import { useMedia } from "../ui/useMedia";
import { texts } from "../texts";

export function ChatView({ rest }: { rest: string }) {
	const state = useStore(chat);
	const o = useStore(options);
	const models = useResource<Models>("/api/v1/models", { events: ["model_*", "models.changed"] });
	const opening = useOpening(rest);
	const [isSettingUp, setSettingUp] = useState(false);
	const [isListing, setListing] = useState(false);
	const [isHelping, setHelping] = useState(false);
	const other = useStore(otherModelFor);
	const isWide = useMedia("(min-width: 1100px)");
	const all = (models.data?.models ?? []).filter((m) => m.type === "llm");
	const model = all.find((m) => isCalled(m, state.model));
	useModel(models.data ? all : null, model);
	useAddress(state, opening.isLoading || opening.error !== null);
	useStopKey(state.running !== "");
	useEffect(() => focusMainLater(), []);
	const shownTurns = path(state.tree);
	useKeys({
		search: () => {
			const field = document.querySelector<HTMLElement>(".sidebar input[type=search]");
			if (field) field.focus();
			else setListing(true);
			return true;
		},
		begin: () => (begin(), true),
		editLast: () => {
			const last = shownTurns.at(-1);
			if (!last || state.running || state.isReadOnly) return false;
			edit.set({ turn: last.id, of: "question", text: last.question.text });
			return true;
		},
		help: () => (setHelping(true), true),
	});

	return (
		<div class="chat-layout">
			{isWide && (
				<aside aria-label={texts.common.conversations}>
					<Sidebar />
				</aside>
			)}
			<div class="chat">
				<header class="chat-header">
					<h1 tabIndex={-1} class="visually-hidden">{texts.common.chat}</h1>
					{!isWide && <Button icon="conversations" label={texts.chat.showConversations} onClick={() => setListing(true)} />}
					<ModelPicker models={all} value={state.model} onChoose={setModel} />
					<span class="spring" />
					{shownTurns.length > 0 && <Export state={state} />}
					<Button icon="settings" onClick={() => setSettingUp(true)}>
						<span class="wide-only">{texts.common.settings}</span>
					</Button>
					{shownTurns.length > 0 && (
						<Button icon="plus" onClick={begin}>
							<span class="wide-only">{texts.common.newChat}</span>
						</Button>
					)}
				</header>
				{models.error && <Failure error={models.error} retry={models.reload} />}
				{opening.error && <Failure error={opening.error} retry={opening.retry} />}
				{opening.isLoading ? <Loading /> : <Turns state={state} hasModels={models.data === null || all.length > 0} />}
				{state.isReadOnly ? (
					<Note>{state.isReadOnly}</Note>
				) : (
					<Composer
						isRunning={state.running !== ""}
						refuses={opening.isLoading ? texts.chat.waitUntilConversationShown : refusal(models.data !== null, all.length, state.model)}
						refusesAudio={model && !model.capabilities?.audio ? texts.chat.hearChooseModel(model.display_name) : null}
						refusesImages={model && !model.capabilities?.vision ? texts.chat.seeImagesChooseModel(model.display_name) : null}
						chips={chipsOf(o)}
						context={contextOf(model, shownTurns)}
					/>
				)}
			</div>
			{isSettingUp && <ChatSettings model={model} onClose={() => setSettingUp(false)} />}
			{isHelping && <KeyHelp onClose={() => setHelping(false)} />}
			{other && <ModelChoice title={texts.common.askAnotherModel} models={all} value={other.model} onChoose={(name) => askAgain(other, { model: name })} onClose={() => otherModelFor.set(null)} />}
			{isListing && !isWide && (
				<Dialog title={texts.common.conversations} onClose={() => setListing(false)}>
					<Sidebar onLeave={() => setListing(false)} />
				</Dialog>
			)}
		</div>
	);
}

const isCalled = (m: Model, name: string): boolean => m.key === name || m.loaded_instances.some((i) => i.id === name);

function refusal(isKnown: boolean, number: number, model: string): string | null {
	if (isKnown && number === 0) return texts.chat.noModelAskDownload;
	return model ? null : texts.chat.chooseAModelFirst;
}

/** How much context the model has, and how much of it the conversation takes. */
function contextOf(model: Model | undefined, turns: Turn[]) {
	const stats = turns.at(-1)?.answer.stats;
	const loaded = model?.loaded_instances[0]?.config.context_length;
	return { length: loaded ?? model?.max_context_length ?? 0, used: stats ? stats.input_tokens + stats.total_output_tokens : 0 };
}

function begin(): void {
	newChat();
	focusMain();
}

/** Says in short what differs from the defaults. */
function chipsOf(o: Options): string[] {
	const chips: string[] = [];
	if (!o.isStored) chips.push(texts.chat.notStored);
	if (o.preset) chips.push(o.preset);
	if (o.systemPrompt) chips.push(texts.common.systemPrompt);
	if (o.reasoning) chips.push(texts.chat.thinkingOf(o.reasoning));
	const set = numberNames.filter((n) => o.numbers[n]?.trim()).length + [o.stop, o.draftModel, o.bias].filter((t) => t.trim()).length;
	if (set > 0) chips.push(texts.chat.parameters(set));
	return [...chips, ...Object.keys(o.servers)];
}

/** Opens the conversation that the address names. */
function useOpening(id: string) {
	const { query } = useRoute();
	const owner = query.get("owner");
	const [state, setState] = useState<{ id: string; error: Error | null }>({ id: "", error: null });
	const [attempt, setAttempt] = useState(0);
	const isWanted = id !== "" && (id !== chat.value.conversation || owner !== null);
	useEffect(() => {
		if (!isWanted) return setState({ id, error: null });
		const ending = new AbortController();
		openConversation(id, owner, ending.signal).then(
			() => setState({ id, error: null }),
			(error: Error) => !isAbort(error) && setState({ id, error }),
		);
		return () => ending.abort();
	}, [id, owner, attempt]);
	return { error: state.id === id ? state.error : null, isLoading: isWanted && state.id !== id, retry: () => setAttempt(attempt + 1) };
}

/** Chooses the model that the address names. Otherwise, if none is chosen: a loaded one, if there is one. */
function useModel(all: Model[] | null, model: Model | undefined): void {
	const asked = useRoute().query.get("model");
	useEffect(() => {
		if (!asked) return;
		setModel(asked);
		setQuery({ model: null });
	}, [asked]);
	useEffect(() => {
		if (!all || all.length === 0) return;
		if (!model) setModel((all.find((m) => m.loaded_instances.length > 0) ?? all[0])?.key ?? "");
		const { reasoning } = options.value;
		if (model && reasoning && !model.capabilities?.reasoning?.allowed_options.includes(reasoning as "on")) changeOptions({ reasoning: "" });
	}, [all?.length, model?.key]);
}

/** Puts the stored conversation into the address, so that it is found after a reload, unless the address names one that is to be shown. */
function useAddress({ conversation, isReadOnly, tree, opened }: Chat, isOpening: boolean): void {
	const isKept = isOpening || isReadOnly !== "" || tree.turns.size === 0;
	useEffect(() => {
		if (!isKept) replace("chat", conversation);
	}, [conversation, isKept, opened]);
}

/** Escape stops the answer. */
function useStopKey(isRunning: boolean): void {
	useEffect(() => {
		if (!isRunning) return;
		const onKey = (e: KeyboardEvent) => {
			if (e.key === "Escape" && !e.defaultPrevented && !document.querySelector("dialog[open]")) stop();
		};
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, [isRunning]);
}

function Export({ state }: { state: Chat }) {
	const [isOpen, setOpen] = useState(false);
	const name = `chat-${(state.conversation || "new").replace(/^resp_/, "").slice(0, 12)}`;
	const saveAs = (ending: string, type: string, text: string) => {
		save(`${name}.${ending}`, type, text);
		setOpen(false);
	};
	return (
		<>
			<Button icon="downloads" onClick={() => setOpen(true)}>
				<span class="wide-only">{texts.chat.export}</span>
			</Button>
			{isOpen && (
				<Dialog title={texts.chat.exportTheConversation} onClose={() => setOpen(false)}>
					<p>{texts.chat.markdownBranchShownJson}</p>
					<div class="row">
						<Button onClick={() => saveAs("md", "text/markdown", asMarkdown(state.tree))}>{texts.common.saveMarkdown}</Button>
						<Button onClick={() => saveAs("json", "application/json", asJSON(state.tree, state.conversation))}>{texts.common.saveJson}</Button>
					</div>
				</Dialog>
			)}
		</>
	);
}
