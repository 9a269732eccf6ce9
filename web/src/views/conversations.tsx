import { useEffect, useState } from "preact/hooks";
import { formatAgo, formatNumber, formatTime } from "../core/format";
import { call, get, isAbort, segment } from "../core/http";
import { useResource } from "../core/resource";
import { href, setQuery, useRoute } from "../core/router";
import { session, useCan } from "../core/session";
import { useStore } from "../core/store";
import type { Token } from "../core/types";
import { Button } from "../ui/Button";
import { confirm } from "../ui/confirm";
import { Dialog } from "../ui/Dialog";
import { Select } from "../ui/Field";
import { Badge, Empty, Failure, Loading, type Tone } from "../ui/states";
import { Table } from "../ui/Table";
import { toast } from "../ui/toast";
import { useNow } from "../ui/useNow";
import { View } from "../ui/View";
import { texts } from "../texts";

interface Conversation {
	id: string;
	title: string;
	dialect: string;
	model: string;
	status: string;
	turns: number;
	owner: string;
	created_at: string | null;
	updated_at: string | null;
}

interface Page {
	conversations: Conversation[];
	next_cursor: string | null;
}

const path = "/api/v1/conversations";
const pageSize = 50;

export function Conversations() {
	const { query } = useRoute();
	const owner = query.get("owner");
	const list = usePages(owner);
	const [isCleaning, setCleaning] = useState(false);
	const remove = async (c: Conversation) => {
		const isSure = await confirm({
			title: texts.common.deleteThisConversation,
			text: <p>{texts.conversations.withBranches(c.title || texts.common.untitled)}</p>,
			action: texts.common.delete,
			danger: true,
		});
		if (!isSure) return;
		await call("DELETE", `${path}/${segment(c.id)}`, { query: owner === null ? {} : { owner } });
		toast(texts.common.theConversationWasDeleted);
		list.reload();
	};
	return (
		<View
			title={texts.common.conversations}
			lead={texts.conversations.lead}
			actions={
				<>
					<Owners owner={owner} />
					<Button icon="refresh" label={texts.conversations.refresh} onClick={list.reload} />
					{list.all.length > 0 && (
						<Button icon="trash" onClick={() => setCleaning(true)}>{texts.conversations.deleteOldOnes}</Button>
					)}
				</>
			}
		>
			{list.error && <Failure error={list.error} retry={list.reload} />}
			{list.isLoading && list.all.length === 0 ? <Loading /> : <List all={list.all} owner={owner} onRemove={remove} />}
			{list.next && (
				<p class="more">
					<Button onClick={list.more}>{texts.common.showMore}</Button>
				</p>
			)}
			{isCleaning && <Cleaning owner={owner} onClose={() => setCleaning(false)} onDone={list.reload} />}
		</View>
	);
}

/** Fetches the list page by page. */
function usePages(owner: string | null) {
	const { generation } = useStore(session);
	const [state, setState] = useState<{ all: Conversation[]; next: string | null; error: Error | null; isLoading: boolean }>({
		all: [],
		next: null,
		error: null,
		isLoading: true,
	});
	const [count, setCount] = useState(0);
	const query = (cursor: string | null) => {
		const q: Record<string, string | number> = { limit: pageSize };
		if (cursor) q["cursor"] = cursor;
		if (owner !== null) q["owner"] = owner;
		return q;
	};
	useEffect(() => {
		const ending = new AbortController();
		setState((s) => ({ ...s, isLoading: true }));
		get<Page>(path, { query: query(null), signal: ending.signal }).then(
			(page) => setState({ all: page.conversations, next: page.next_cursor, error: null, isLoading: false }),
			(error: Error) => !isAbort(error) && setState({ all: [], next: null, error, isLoading: false }),
		);
		return () => ending.abort();
	}, [owner, generation, count]);
	const more = async () => {
		const page = await get<Page>(path, { query: query(state.next) });
		setState((s) => ({ ...s, all: [...s.all, ...page.conversations.filter((c) => !s.all.some((o) => o.id === c.id))], next: page.next_cursor }));
	};
	return { ...state, more, reload: () => setCount((n) => n + 1) };
}

/** Chooses whose conversations are shown; for administrators. */
function Owners({ owner }: { owner: string | null }) {
	const isAdmin = useCan("admin");
	const { settings } = useStore(session);
	const tokens = useResource<{ tokens: Token[] }>(isAdmin ? "/api/v1/tokens" : null);
	if (!isAdmin || !settings?.authentication || !tokens.data) return null;
	const choices = [
		{ value: "mine", text: texts.conversations.yourOwn },
		{ value: "", text: texts.conversations.withoutAToken },
		...tokens.data.tokens.map((t) => ({ value: t.id, text: t.name || t.id })),
	];
	if (owner !== null && !choices.some((c) => c.value === owner)) choices.push({ value: owner, text: owner });
	return <Select label={texts.conversations.whose} hideLabel value={owner ?? "mine"} onChange={(value) => setOwner(value)} choices={choices} />;
}

function setOwner(value: string): void {
	if (value === "mine") setQuery({ owner: null });
	else if (value !== "") setQuery({ owner: value });
	else location.hash = href("conversations") + "?owner="; // setQuery would leave it out
}

const tones: Record<string, Tone> = { completed: "neutral", incomplete: "warning", failed: "bad", cancelled: "warning", in_progress: "busy" };

function List({ all, owner, onRemove }: { all: Conversation[]; owner: string | null; onRemove: (c: Conversation) => Promise<void> }) {
	const now = useNow(30_000);
	return (
		<Table
			label={texts.common.conversations}
			rows={all}
			rowKey={(c) => c.id}
			empty={
				<Empty icon="conversations" title={texts.conversations.noConversationsAreStored}>
					<p>{texts.conversations.requestsWithArentStored(<a href={href("chat")}>{texts.common.askAModelSomething}</a>, <code>"store": false</code>)}</p>
				</Empty>
			}
			columns={[
				{
					title: texts.common.title,
					render: (c) => (
						<a class="title-link" href={href("chat", c.id) + (owner === null ? "" : "?owner=" + encodeURIComponent(owner))}>
							{c.title || texts.common.untitled}
						</a>
					),
				},
				{ title: texts.common.model, minor: true, render: (c) => c.model },
				{ title: texts.common.api, minor: true, render: (c) => (c.dialect === "native" ? texts.conversations.native : texts.conversations.v1Responses) },
				{ title: texts.conversations.turns, numeric: true, minor: true, render: (c) => formatNumber(c.turns) },
				{ title: texts.common.status, minor: true, render: (c) => <Badge tone={tones[c.status] ?? "neutral"}>{c.status.replace("_", " ")}</Badge> },
				{ title: texts.common.updated, render: (c) => <time title={formatTime(c.updated_at)}>{formatAgo(c.updated_at, now)}</time> },
				{
					title: texts.common.actions,
					hideTitle: true,
					render: (c) => (
						<div class="actions">
							<Button kind="quiet" small icon="trash" label={texts.conversations.deleteTitle(c.title || texts.common.untitled)} onClick={() => onRemove(c)} />
						</div>
					),
				},
			]}
		/>
	);
}

const ages = [
	{ value: "1", text: texts.conversations.aDay },
	{ value: "7", text: texts.conversations.aWeek },
	{ value: "30", text: texts.conversations.aMonth },
	{ value: "90", text: texts.conversations.threeMonths },
	{ value: "365", text: texts.conversations.aYear },
	{ value: "0", text: texts.conversations.noTime },
];

/** Deletes the conversations that haven't been continued for some time. */
function Cleaning({ owner, onClose, onDone }: { owner: string | null; onClose: () => void; onDone: () => void }) {
	const [days, setDays] = useState("30");
	const [error, setError] = useState<Error | null>(null);
	const remove = async () => {
		const before = new Date(Date.now() - Number(days) * 86_400_000).toISOString();
		try {
			const { deleted } = await call<{ deleted: number }>("DELETE", path, { query: { updated_before: before, ...(owner !== null && { owner }) } });
			toast(deleted === 1 ? texts.conversations.conversationWasDeleted : texts.conversations.conversationsWereDeleted(formatNumber(deleted)));
			onDone();
			onClose();
		} catch (e) {
			setError(e as Error);
		}
	};
	return (
		<Dialog
			title={texts.conversations.deleteOldConversations}
			onClose={onClose}
			onSubmit={() => void remove()}
			actions={
				<>
					<Button onClick={onClose}>{texts.common.cancel}</Button>
					<Button kind="danger" type="submit">{texts.common.delete}</Button>
				</>
			}
		>
			<Select label={texts.conversations.notContinuedFor} value={days} onChange={setDays} choices={ages} />
			<p class="muted">{texts.conversations.theirBranchesSavedStates}</p>
			{error && <Failure error={error} />}
		</Dialog>
	);
}
