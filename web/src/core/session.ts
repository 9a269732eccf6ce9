import { inTab } from "./keep";
import { Store, useStore } from "./store";
import type { Identity, Scope, Settings } from "./types";
import { texts } from "../texts";

/** Who uses the page, as the server sees it. */
export interface Session {
	/** The API token that was entered; null: none. */
	token: string | null;
	/** The settings of the site; null until they are known. */
	settings: Settings | null;
	/** That a token is asked for; null: none is. */
	asking: { why: string; isRequired: boolean } | null;
	/** Changes whenever somebody else uses the page, so that everything is fetched anew. */
	generation: number;
}

export const session = new Store<Session>({ token: inTab.get("token"), settings: null, asking: null, generation: 0 });

let waiting: Array<() => void> = [];

/** Asks for a token without which the page can show nothing, and resolves when one was entered. */
export function requireToken(why: string): Promise<void> {
	session.set({ ...session.value, asking: { why, isRequired: true } });
	return new Promise((resolve) => waiting.push(resolve));
}

/** Offers to enter another token. */
export function offerToken(why = ""): void {
	session.set({ ...session.value, asking: { why, isRequired: false } });
}

export function stopAsking(): void {
	session.set({ ...session.value, asking: null });
}

/** Uses a token from now on, and repeats what waits for one. */
export function signIn(token: string, settings: Settings): void {
	inTab.set("token", token);
	session.set({ token, settings, asking: null, generation: session.value.generation + 1 });
	const all = waiting;
	waiting = [];
	for (const resolve of all) resolve();
}

/** Has something done when whoever uses the page signs out, who leaves nothing behind. */
export function onSignOut(forget: () => void): void {
	session.follow((s) => {
		if (s.token === null && s.settings === null && s.asking === null && s.generation > 0) forget();
	});
}

/** Forgets the token, and whatever the page showed by it. */
export function signOut(): void {
	inTab.set("token", null);
	session.set({ token: null, settings: null, asking: null, generation: session.value.generation + 1 });
}

export function setSettings(settings: Settings): void {
	session.set({ ...session.value, settings });
}

export const identity = (): Identity | null => session.value.settings?.identity ?? null;

/** Reports whether whoever uses the page may do something. Without authentication, everybody may do all that needs no token. */
export function can(scope: Scope): boolean {
	const { settings } = session.value;
	if (!settings) return false;
	if (!settings.authentication && scope !== "admin" && scope !== "mcp.plugin") return true;
	const scopes = settings.identity?.scopes ?? [];
	return scopes.includes(scope) || scopes.includes("admin");
}

/** As {@link can}, for a component, which is rendered again if that changes. */
export function useCan(scope: Scope): boolean {
	useStore(session);
	return can(scope);
}

/** Why something can't be done without a scope. */
export function lacks(scope: Scope): string {
	return session.value.settings?.identity ? texts.session.tokenLacksScope(scope) : texts.session.needsTokenScope(scope);
}
