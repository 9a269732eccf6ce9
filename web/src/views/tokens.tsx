import { useState } from "preact/hooks";
import { TokenForm } from "../activity/tokenform";
import { formatAgo, formatCompact, formatNumber, formatTime, formatUntil, plural } from "../core/format";
import { call, segment } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import { session } from "../core/session";
import type { Token } from "../core/types";
import { Button } from "../ui/Button";
import { confirm } from "../ui/confirm";
import { Code } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { Badge, Empty, Fetched, Note } from "../ui/states";
import { Table } from "../ui/Table";
import { toast } from "../ui/toast";
import { useNow } from "../ui/useNow";
import { View } from "../ui/View";

interface Used {
	owner: string;
	requests: number;
	input_tokens: number;
	output_tokens: number;
	tokens_today?: number;
}

export function Tokens() {
	const tokens = useResource<{ tokens: Token[] }>("/api/v1/tokens");
	const usage = useResource<{ usage: Used[] }>("/api/v1/usage", { query: { by: "token", since: "30d" } });
	const [editing, setEditing] = useState<Token | "new" | null>(null);
	const [secret, setSecret] = useState<{ name: string; token: string } | null>(null);
	const used = new Map((usage.data?.usage ?? []).map((u) => [u.owner, u]));
	const saved = (token: Token & { token?: string }) => {
		setEditing(null);
		tokens.reload();
		if (token.token) setSecret({ name: token.name, token: token.token });
		else toast("The token was changed.");
	};
	return (
		<View
			title="Tokens"
			lead="API tokens of this server: what each may do, and what it has used in the last 30 days."
			actions={
				<Button kind="primary" icon="plus" onClick={() => setEditing("new")}>
					Create token
				</Button>
			}
		>
			{session.value.settings?.authentication === false && (
				<Note>This site doesn't ask for tokens. They are used on sites with lm_auth, and for MCP plugins.</Note>
			)}
			<Fetched from={tokens}>
				{(data) => <List tokens={data.tokens} used={used} onEdit={setEditing} onRevoke={(t) => revoke(t).then((done) => done && tokens.reload())} />}
			</Fetched>
			{editing && <TokenForm token={editing === "new" ? null : editing} onClose={() => setEditing(null)} onSaved={saved} />}
			{secret && <Secret {...secret} onClose={() => setSecret(null)} />}
		</View>
	);
}

async function revoke(token: Token): Promise<boolean> {
	const isSure = await confirm({
		title: `Revoke ${token.name || token.id}?`,
		text: <p>Programs that use it are refused at once, and its running requests end. Its conversations stay stored.</p>,
		action: "Revoke",
		danger: true,
	});
	if (!isSure) return false;
	await call("DELETE", "/api/v1/tokens/" + segment(token.id));
	toast("The token was revoked.");
	return true;
}

interface ListProps {
	tokens: Token[];
	used: Map<string, Used>;
	onEdit: (t: Token) => void;
	onRevoke: (t: Token) => Promise<unknown>;
}

function List({ tokens, used, onEdit, onRevoke }: ListProps) {
	const now = useNow(30_000);
	return (
		<Table
			label="Tokens"
			rows={tokens}
			rowKey={(t) => t.id}
			empty={
				<Empty icon="tokens" title="There are no tokens">
					<p>Create one for each program or person, so that you can limit and revoke it alone.</p>
				</Empty>
			}
			columns={[
				{ title: "Name", name: true, render: (t) => <strong title={t.id}>{t.name || t.id}</strong> },
				{
					title: "May",
					render: (t) => (
						<span class="badges">
							{t.scopes.map((s) => (
								<Badge key={s} tone={s === "admin" ? "warning" : "neutral"}>
									{s}
								</Badge>
							))}
						</span>
					),
				},
				{ title: "Models", minor: true, render: (t) => (t.models.length === 0 ? <span class="muted">all</span> : t.models.join(", ")) },
				{ title: "Limits", minor: true, render: limitsOf },
				{ title: "Used in 30 days", minor: "phone", render: (t) => <Usage used={used.get(t.id)} token={t} /> },
				{ title: "Last used", minor: true, render: (t) => <time title={formatTime(t.last_used_at)}>{formatAgo(t.last_used_at, now)}</time> },
				{ title: "Expires", minor: true, render: (t) => <Expiry at={t.expires_at} now={now} /> },
				{
					title: "Actions",
					hideTitle: true,
					render: (t) => (
						<div class="actions">
							<Button kind="quiet" small icon="edit" label={`Edit ${t.name || t.id}`} onClick={() => onEdit(t)} />
							<Button kind="quiet" small icon="trash" label={`Revoke ${t.name || t.id}`} onClick={() => onRevoke(t)} />
						</div>
					),
				},
			]}
		/>
	);
}

function limitsOf({ limits }: Token) {
	const all: string[] = [];
	if (limits.requests_per_minute) all.push(`${formatNumber(limits.requests_per_minute)} requests/min`);
	if (limits.tokens_per_day) all.push(`${formatCompact(limits.tokens_per_day)} tokens/day`);
	if (limits.concurrent_requests) all.push(`${formatNumber(limits.concurrent_requests)} at a time`);
	return all.length > 0 ? all.join(", ") : <span class="muted">none</span>;
}

function Usage({ used, token }: { used: Used | undefined; token: Token }) {
	const perDay = token.limits.tokens_per_day;
	if (!used) return <span class="muted">nothing</span>;
	return (
		<span class="stacked">
			<a href={href("usage", "", { token: token.id })}>
				{formatCompact(used.input_tokens + used.output_tokens)} tokens, {plural(used.requests, "request")}
			</a>
			{perDay && used.tokens_today !== undefined && (
				<small class="muted">
					today {formatCompact(used.tokens_today)} of {formatCompact(perDay)}
				</small>
			)}
		</span>
	);
}

function Expiry({ at, now }: { at: string | null; now: number }) {
	if (!at) return <span class="muted">never</span>;
	if (Date.parse(at) <= now) return <Badge tone="bad">expired</Badge>;
	return <time title={formatTime(at)}>{formatUntil(at, now)}</time>;
}

/** The new token, which is shown once. */
function Secret({ name, token, onClose }: { name: string; token: string; onClose: () => void }) {
	return (
		<Dialog
			title={`Token for ${name}`}
			actions={
				<Button kind="primary" onClick={onClose}>
					Done
				</Button>
			}
		>
			<p>Copy it now: the server doesn't keep it, and it can't be shown again.</p>
			<Code text={token} label="token" />
			<p class="muted">
				Programs send it as <code>Authorization: Bearer …</code> or as their API key.
			</p>
		</Dialog>
	);
}
