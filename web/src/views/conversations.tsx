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
			title: "Delete this conversation?",
			text: <p>“{c.title || "Untitled"}”, with all of its branches and saved states. This can't be undone.</p>,
			action: "Delete",
			danger: true,
		});
		if (!isSure) return;
		await call("DELETE", `${path}/${segment(c.id)}`, { query: owner === null ? {} : { owner } });
		toast("The conversation was deleted.");
		list.reload();
	};
	return (
		<View
			title="Conversations"
			lead="What was asked with native chat and /v1/responses, as the server has stored it."
			actions={
				<>
					<Owners owner={owner} />
					<Button icon="refresh" label="Refresh" onClick={list.reload} />
					{list.all.length > 0 && (
						<Button icon="trash" onClick={() => setCleaning(true)}>
							Delete old ones
						</Button>
					)}
				</>
			}
		>
			{list.error && <Failure error={list.error} retry={list.reload} />}
			{list.isLoading && list.all.length === 0 ? <Loading /> : <List all={list.all} owner={owner} onRemove={remove} />}
			{list.next && (
				<p class="more">
					<Button onClick={list.more}>Show more</Button>
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
		{ value: "mine", text: "Your own" },
		{ value: "", text: "Without a token" },
		...tokens.data.tokens.map((t) => ({ value: t.id, text: t.name || t.id })),
	];
	if (owner !== null && !choices.some((c) => c.value === owner)) choices.push({ value: owner, text: owner });
	return <Select label="Whose" hideLabel value={owner ?? "mine"} onChange={(value) => setOwner(value)} choices={choices} />;
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
			label="Conversations"
			rows={all}
			rowKey={(c) => c.id}
			empty={
				<Empty icon="conversations" title="No conversations are stored">
					<p>
						<a href={href("chat")}>Ask a model something</a>. Requests with <code>"store": false</code> aren't stored.
					</p>
				</Empty>
			}
			columns={[
				{
					title: "Title",
					render: (c) => (
						<a class="title-link" href={href("chat", c.id) + (owner === null ? "" : "?owner=" + encodeURIComponent(owner))}>
							{c.title || "Untitled"}
						</a>
					),
				},
				{ title: "Model", minor: true, render: (c) => c.model },
				{ title: "API", minor: true, render: (c) => (c.dialect === "native" ? "native" : "/v1/responses") },
				{ title: "Turns", numeric: true, minor: true, render: (c) => formatNumber(c.turns) },
				{ title: "Status", minor: true, render: (c) => <Badge tone={tones[c.status] ?? "neutral"}>{c.status.replace("_", " ")}</Badge> },
				{ title: "Updated", render: (c) => <time title={formatTime(c.updated_at)}>{formatAgo(c.updated_at, now)}</time> },
				{
					title: "Actions",
					hideTitle: true,
					render: (c) => (
						<div class="actions">
							<Button kind="quiet" small icon="trash" label={`Delete ${c.title || "Untitled"}`} onClick={() => onRemove(c)} />
						</div>
					),
				},
			]}
		/>
	);
}

const ages = [
	{ value: "1", text: "a day" },
	{ value: "7", text: "a week" },
	{ value: "30", text: "a month" },
	{ value: "90", text: "three months" },
	{ value: "365", text: "a year" },
	{ value: "0", text: "no time: all of them" },
];

/** Deletes the conversations that haven't been continued for some time. */
function Cleaning({ owner, onClose, onDone }: { owner: string | null; onClose: () => void; onDone: () => void }) {
	const [days, setDays] = useState("30");
	const [error, setError] = useState<Error | null>(null);
	const remove = async () => {
		const before = new Date(Date.now() - Number(days) * 86_400_000).toISOString();
		try {
			const { deleted } = await call<{ deleted: number }>("DELETE", path, { query: { updated_before: before, ...(owner !== null && { owner }) } });
			toast(deleted === 1 ? "1 conversation was deleted." : `${formatNumber(deleted)} conversations were deleted.`);
			onDone();
			onClose();
		} catch (e) {
			setError(e as Error);
		}
	};
	return (
		<Dialog
			title="Delete old conversations"
			onClose={onClose}
			onSubmit={() => void remove()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button kind="danger" type="submit">
						Delete
					</Button>
				</>
			}
		>
			<Select label="Not continued for" value={days} onChange={setDays} choices={ages} />
			<p class="muted">Their branches and saved states are deleted as well. This can't be undone.</p>
			{error && <Failure error={error} />}
		</Dialog>
	);
}
