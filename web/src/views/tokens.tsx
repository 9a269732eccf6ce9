import { useState } from "preact/hooks";
import { TokenForm } from "../activity/tokenform";
import { formatAgo, formatCompact, formatNumber, formatTime, formatUntil } from "../core/format";
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
import { texts } from "../texts";

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
		else toast(texts.tokens.theTokenWasChanged);
	};
	return (
		<View
			title={texts.common.tokens}
			lead={texts.tokens.apiTokensServerEach}
			actions={
				<Button kind="primary" icon="plus" onClick={() => setEditing("new")}>{texts.common.createToken}</Button>
			}
		>
			{session.value.settings?.authentication === false && (
				<Note>{texts.tokens.siteAskTokensUsed}</Note>
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
		title: texts.tokens.revokeName(token.name || token.id),
		text: <p>{texts.tokens.programsUseRefusedOnce}</p>,
		action: texts.tokens.revoke,
		danger: true,
	});
	if (!isSure) return false;
	await call("DELETE", "/api/v1/tokens/" + segment(token.id));
	toast(texts.tokens.theTokenWasRevoked);
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
			label={texts.common.tokens}
			rows={tokens}
			rowKey={(t) => t.id}
			empty={
				<Empty icon="tokens" title={texts.tokens.thereAreNoTokens}>
					<p>{texts.tokens.createOneEachProgram}</p>
				</Empty>
			}
			columns={[
				{ title: texts.common.name, name: true, render: (t) => <strong title={t.id}>{t.name || t.id}</strong> },
				{
					title: texts.tokens.may,
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
				{ title: texts.common.models, minor: true, render: (t) => (t.models.length === 0 ? <span class="muted">{texts.tokens.all}</span> : t.models.join(", ")) },
				{ title: texts.tokens.limits, minor: true, render: limitsOf },
				{ title: texts.tokens.usedIn30Days, minor: "phone", render: (t) => <Usage used={used.get(t.id)} token={t} /> },
				{ title: texts.common.lastUsed, minor: true, render: (t) => <time title={formatTime(t.last_used_at)}>{formatAgo(t.last_used_at, now)}</time> },
				{ title: texts.common.expires, minor: true, render: (t) => <Expiry at={t.expires_at} now={now} /> },
				{
					title: texts.common.actions,
					hideTitle: true,
					render: (t) => (
						<div class="actions">
							<Button kind="quiet" small icon="edit" label={texts.common.editName(t.name || t.id)} onClick={() => onEdit(t)} />
							<Button kind="quiet" small icon="trash" label={texts.tokens.revokeNameOfName(t.name || t.id)} onClick={() => onRevoke(t)} />
						</div>
					),
				},
			]}
		/>
	);
}

function limitsOf({ limits }: Token) {
	const all: string[] = [];
	if (limits.requests_per_minute) all.push(texts.tokens.perMinute(formatNumber(limits.requests_per_minute)));
	if (limits.tokens_per_day) all.push(texts.tokens.perDay(formatCompact(limits.tokens_per_day)));
	if (limits.concurrent_requests) all.push(texts.tokens.atATime(formatNumber(limits.concurrent_requests)));
	return all.length > 0 ? all.join(", ") : <span class="muted">{texts.common.lowerNone}</span>;
}

function Usage({ used, token }: { used: Used | undefined; token: Token }) {
	const perDay = token.limits.tokens_per_day;
	if (!used) return <span class="muted">{texts.tokens.nothing}</span>;
	return (
		<span class="stacked">
			<a href={href("usage", "", { token: token.id })}>{texts.tokens.tokens(formatCompact(used.input_tokens + used.output_tokens), used.requests)}</a>
			{perDay && used.tokens_today !== undefined && (
				<small class="muted">{texts.tokens.todayOfTokensToday(formatCompact(used.tokens_today), formatCompact(perDay))}</small>
			)}
		</span>
	);
}

function Expiry({ at, now }: { at: string | null; now: number }) {
	if (!at) return <span class="muted">{texts.common.lowerNever}</span>;
	if (Date.parse(at) <= now) return <Badge tone="bad">{texts.tokens.expired}</Badge>;
	return <time title={formatTime(at)}>{formatUntil(at, now)}</time>;
}

/** The new token, which is shown once. */
function Secret({ name, token, onClose }: { name: string; token: string; onClose: () => void }) {
	return (
		<Dialog
			title={texts.tokens.tokenForName(name)}
			actions={
				<Button kind="primary" onClick={onClose}>{texts.common.done}</Button>
			}
		>
			<p>{texts.tokens.copyNowServerKeep}</p>
			<Code text={token} label={texts.tokens.token} />
			<p class="muted">{texts.tokens.programsSendTheirApi(<code>Authorization: Bearer …</code>)}</p>
		</Dialog>
	);
}
