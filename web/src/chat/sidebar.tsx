import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatAgo } from "../core/format";
import { call, get, isAbort, messageOf, segment } from "../core/http";
import { href } from "../core/router";
import { session } from "../core/session";
import { useSelected, useStore } from "../core/store";
import type { Conversation, Conversations } from "../core/types";
import { Button } from "../ui/Button";
import { confirm } from "../ui/confirm";
import { Dialog } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Icon } from "../ui/icons";
import { Failure, Loading } from "../ui/states";
import { toast } from "../ui/toast";
import { useNow } from "../ui/useNow";
import { chat, newChat } from "./chat";
import { save } from "./export";
import { named } from "./titles";
import { allAsMarkdown, allConversations, importFile } from "./transfer";
import { texts } from "../texts";

const path = "/api/v1/conversations";
const pageSize = 40;
const typingPause = 250; // milliseconds

interface Listed {
	pinned: Conversation[];
	others: Conversation[];
	next: string | null;
	error: Error | null;
	isLoading: boolean;
}

/** The stored conversations, to find one and to put them in order. onLeave is called when another one is opened. */
export const Sidebar = memo(function Sidebar({ onLeave }: { onLeave?: () => void }) {
	const [query, setQuery] = useState("");
	const list = useList(query);
	const [editing, setEditing] = useState<Conversation | null>(null);
	const [chosen, setChosen] = useState<ReadonlySet<string> | null>(null); // null: none is to be deleted
	const [isExporting, setExporting] = useState(false);
	const conversation = useSelected(chat, (c) => c.conversation);
	const all = [...list.pinned, ...list.others];
	const choose = (id: string, yes: boolean) => {
		const next = new Set(chosen);
		if (yes) next.add(id);
		else next.delete(id);
		setChosen(next);
	};
	const remove = async () => {
		if (!chosen?.size) return setChosen(null);
		if (await deleted([...chosen])) {
			setChosen(null);
			list.reload();
		}
	};
	const row = (c: Conversation) => (
		<Row key={c.id} of={c} isCurrent={c.id === conversation} isChosen={chosen?.has(c.id) ?? null} onChoose={choose} onEdit={setEditing} onLeave={onLeave} />
	);
	return (
		<div class="sidebar">
			<TextField label={texts.common.searchConversations} hideLabel type="search" placeholder={texts.common.searchConversations} value={query} onInput={setQuery} />
			{list.error && <Failure error={list.error} retry={list.reload} />}
			{list.isLoading && all.length === 0 && <Loading />}
			{!list.isLoading && !list.error && all.length === 0 && <p class="muted hint">{query ? texts.sidebar.noConversationHasThat : texts.sidebar.noConversationsYet}</p>}
			{list.pinned.length > 0 && (
				<>
					<h2>{texts.common.pinned}</h2>
					<ul>{list.pinned.map(row)}</ul>
					{list.others.length > 0 && <h2>{texts.sidebar.others}</h2>}
				</>
			)}
			<ul>{list.others.map(row)}</ul>
			{list.next && (
				<Button kind="quiet" small onClick={list.more}>{texts.common.showMore}</Button>
			)}
			<div class="sidebar-actions">
				{chosen ? (
					<>
						<Button small kind="danger" icon="trash" disabledFor={chosen.size === 0 ? texts.sidebar.chooseConversationsFirst : null} onClick={remove}>{texts.sidebar.delete(chosen.size)}</Button>
						<Button small onClick={() => setChosen(null)}>{texts.common.cancel}</Button>
					</>
				) : (
					<>
						{all.length > 0 && (
							<>
								<Button small kind="quiet" onClick={() => setChosen(new Set())}>{texts.sidebar.deleteSeveral}</Button>
								<Button small kind="quiet" onClick={() => setExporting(true)}>{texts.sidebar.exportAll}</Button>
							</>
						)}
						<Import onDone={list.reload} />
					</>
				)}
			</div>
			{isExporting && <ExportAll onClose={() => setExporting(false)} />}
			{editing && <Edit of={editing} onClose={() => setEditing(null)} onChange={list.reload} />}
		</div>
	);
});

/** Fetches the list: again when a conversation has begun, or an answer has ended, and when somebody else uses the page. */
function useList(query: string): Listed & { reload: () => void; more: () => Promise<void> } {
	const { generation } = useStore(session);
	const conversation = useSelected(chat, (c) => c.conversation);
	const answered = useSelected(chat, (c) => c.answered);
	const title = useStore(named);
	const [state, setState] = useState<Listed>({ pinned: [], others: [], next: null, error: null, isLoading: true });
	const [count, setCount] = useState(0);
	const asked = query.trim();
	useEffect(() => {
		const ending = new AbortController();
		const fetchAll = async () => {
			const { signal } = ending;
			const [page, pinned] = await Promise.all([
				get<Conversations>(path, { query: { limit: pageSize, query: asked }, signal }),
				get<Conversations>(path, { query: { limit: 100, pinned: true, query: asked }, signal }),
			]);
			const others = page.conversations.filter((c) => !c.pinned);
			setState({ pinned: pinned.conversations, others, next: page.next_cursor, error: null, isLoading: false });
		};
		setState((s) => ({ ...s, isLoading: true }));
		const timer = setTimeout(() => fetchAll().catch((error: Error) => !isAbort(error) && setState((s) => ({ ...s, error, isLoading: false }))), asked ? typingPause : 0);
		return () => {
			clearTimeout(timer);
			ending.abort();
		};
	}, [asked, generation, conversation, answered, title, count]);
	const more = async () => {
		const page = await get<Conversations>(path, { query: { limit: pageSize, query: asked, cursor: state.next } });
		const known = new Set(state.others.map((c) => c.id));
		setState((s) => ({ ...s, others: [...s.others, ...page.conversations.filter((c) => !c.pinned && !known.has(c.id))], next: page.next_cursor }));
	};
	return { ...state, more, reload: () => setCount((n) => n + 1) };
}

interface RowProps {
	of: Conversation;
	isCurrent: boolean;
	isChosen: boolean | null; // null: none is chosen
	onChoose: (id: string, yes: boolean) => void;
	onEdit: (c: Conversation) => void;
	onLeave?: () => void;
}

function Row({ of: c, isCurrent, isChosen, onChoose, onEdit, onLeave }: RowProps) {
	const now = useNow(60_000);
	const title = c.title || texts.common.untitled;
	return (
		<li>
			{isChosen !== null && <input type="checkbox" aria-label={texts.sidebar.chooseTitle(title)} checked={isChosen} onChange={(e) => onChoose(c.id, e.currentTarget.checked)} />}
			<a href={href("chat", c.id)} aria-current={isCurrent ? "page" : undefined} title={`${title}, ${formatAgo(c.updated_at, now)}`} onClick={onLeave}>
				{c.pinned && <Icon name="pin" />}
				<span>{title}</span>
			</a>
			<Button kind="quiet" small icon="edit" label={texts.sidebar.changeTitle(title)} onClick={() => onEdit(c)} />
		</li>
	);
}

/** Renames, pins and deletes a conversation. */
function Edit({ of: c, onClose, onChange }: { of: Conversation; onClose: () => void; onChange: () => void }) {
	const [title, setTitle] = useState(c.title);
	const change = async (changes: { title?: string; pinned?: boolean }) => {
		await call("PATCH", `${path}/${segment(c.id)}`, { body: changes });
		onChange();
		onClose();
	};
	const submit = () => void change({ title }).catch((error: Error) => toast(error.message, "error"));
	return (
		<Dialog
			title={texts.common.conversation}
			onClose={onClose}
			onSubmit={submit}
			actions={
				<>
					<Button
						icon="trash"
						onClick={async () => {
							if (!(await deleted([c.id]))) return;
							onChange();
							onClose();
						}}
					>{texts.common.delete}</Button>
					<Button icon="pin" onClick={() => change({ pinned: !c.pinned })}>
						{c.pinned ? texts.common.unpin : texts.common.pin}
					</Button>
					<Button kind="primary" type="submit">{texts.common.save}</Button>
				</>
			}
		>
			<TextField label={texts.common.title} value={title} onInput={setTitle} maxLength={80} hint={texts.sidebar.emptyBeginningFirstQuestion} />
			<p class="muted hint">{texts.sidebar.to(c.turns, c.model)}</p>
		</Dialog>
	);
}

/** Deletes conversations, if that is wanted, and reports whether it was. */
async function deleted(ids: string[]): Promise<boolean> {
	const isSure = await confirm({
		title: ids.length === 1 ? texts.common.deleteThisConversation : texts.sidebar.deleteConversations(ids.length),
		text: <p>{texts.sidebar.branchesSavedStatesDeleted}</p>,
		action: texts.common.delete,
		danger: true,
	});
	if (!isSure) return false;
	for (const id of ids) {
		await call("DELETE", `${path}/${segment(id)}`);
		if (id === chat.value.conversation) newChat();
	}
	toast(ids.length === 1 ? texts.common.theConversationWasDeleted : texts.sidebar.wereDeleted(ids.length));
	return true;
}

/** Saves all conversations as one file. */
function ExportAll({ onClose }: { onClose: () => void }) {
	const saveAs = (ending: string, type: string, write: (all: Conversation[]) => string) => async () => {
		const all = await allConversations();
		save("conversations." + ending, type, write(all));
		toast(texts.sidebar.saved(all.length));
		onClose();
	};
	const asJSON = (all: Conversation[]) => JSON.stringify({ conversations: all }, null, "\t") + "\n";
	return (
		<Dialog title={texts.sidebar.exportAllConversations} onClose={onClose}>
			<p>{texts.sidebar.jsonBranchesCanImported}</p>
			<div class="row">
				<Button onClick={saveAs("json", "application/json", asJSON)}>{texts.common.saveJson}</Button>
				<Button onClick={saveAs("md", "text/markdown", allAsMarkdown)}>{texts.common.saveMarkdown}</Button>
			</div>
		</Dialog>
	);
}

/** Stores what was exported as JSON. */
function Import({ onDone }: { onDone: () => void }) {
	const input = useRef<HTMLInputElement>(null);
	const bring = async (file: File | undefined) => {
		if (!file) return;
		try {
			toast(texts.sidebar.imported(await importFile(file)));
		} catch (error) {
			toast(messageOf(error), "error");
		}
		onDone();
	};
	return (
		<>
			<Button small kind="quiet" onClick={() => input.current?.click()}>{texts.sidebar.import}</Button>
			<input
				ref={input}
				type="file"
				accept=".json,application/json"
				hidden
				aria-label={texts.sidebar.fileWithConversations}
				onChange={(e) => {
					void bring(e.currentTarget.files?.[0]);
					e.currentTarget.value = "";
				}}
			/>
		</>
	);
}
