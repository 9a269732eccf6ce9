import type { ComponentChildren } from "preact";
import { ApiError, messageOf } from "../core/http";
import type { Resource } from "../core/resource";
import { offerToken, lacks, session, useCan } from "../core/session";
import type { Scope } from "../core/types";
import { Button } from "./Button";
import { Icon, type IconName } from "./icons";
import { View } from "./View";
import { texts } from "../texts";

/** What a view shows when there is nothing to show: why, and what to do next. */
export function Empty({ icon, title, children }: { icon?: IconName; title: string; children?: ComponentChildren }) {
	return (
		<div class="empty">
			{icon && <Icon name={icon} />}
			<p class="title">{title}</p>
			{children && <div class="prose">{children}</div>}
		</div>
	);
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
	const wantsToken = error instanceof ApiError && (error.status === 401 || error.code === "missing_scope");
	return (
		<div class="note error" role="alert">
			<span>{messageOf(error)}</span>
			{wantsToken && <Button onClick={() => offerToken(texts.states.enterTokenMayDo)}>{texts.states.useAnotherToken}</Button>}
			{retry && !wantsToken && <Button icon="refresh" onClick={retry}>{texts.common.tryAgain}</Button>}
		</div>
	);
}

export function Note({ kind = "info", children }: { kind?: "info" | "warning" | "error"; children: ComponentChildren }) {
	return <div class={"note " + kind}>{children}</div>;
}

/** Shows what was fetched; before that, that it is being fetched, and the error if it can't be. */
export function Fetched<T>({ from, children }: { from: Resource<T>; children: (data: T) => ComponentChildren }) {
	return (
		<>
			{from.error && <Failure error={from.error} retry={from.reload} />}
			{from.data !== null ? children(from.data) : from.isLoading && <Loading />}
		</>
	);
}

export function Loading() {
	return (
		<div class="loading" role="status">
			<span class="visually-hidden">{texts.common.loading}</span>
		</div>
	);
}

/** Shows a view only to those who may see it. */
export function Needs({ scope, title, children }: { scope: Scope; title: string; children: ComponentChildren }) {
	if (useCan(scope)) return <>{children}</>;
	return (
		<View title={title}>
		<Empty icon="tokens" title={lacks(scope)}>
			<p>{texts.states.serversMachineMakesOne(<code>lmcaddy token create --name page --scopes {scope}</code>)}</p>
			<p>
				<Button onClick={() => offerToken()}>{session.value.token ? texts.states.useAnotherToken : texts.common.enterAToken}</Button>
			</p>
		</Empty>
		</View>
	);
}

export type Tone = "neutral" | "good" | "busy" | "warning" | "bad";

export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ComponentChildren }) {
	return <span class={"badge " + tone}>{children}</span>;
}

/** Pairs of a name and a value. */
export function Facts({ children }: { children: ComponentChildren }) {
	return <dl class="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
	if (children === null || children === undefined || children === "" || children === false) return null;
	return (
		<div>
			<dt>{name}</dt>
			<dd>{children}</dd>
		</div>
	);
}
