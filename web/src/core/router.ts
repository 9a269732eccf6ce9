import { Store, useStore } from "./store";

/** Where the page is: #/view/rest?query. */
export interface Route {
	view: string;
	/** What follows the view's name, decoded; empty if nothing does. */
	rest: string;
	query: URLSearchParams;
	/** How many times somebody went to another address, by a link or back. */
	visits: number;
}

let visits = 0;

function parse(hash: string): Route {
	const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
	const slash = path.indexOf("/");
	const view = slash < 0 ? path : path.slice(0, slash);
	return { view, rest: slash < 0 ? "" : decode(path.slice(slash + 1)), query: new URLSearchParams(query), visits };
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

const route = new Store<Route>(parse(location.hash));
addEventListener("hashchange", () => {
	visits++;
	route.set(parse(location.hash));
});

export const useRoute = (): Route => useStore(route);

/** The address of a view, for a link. */
export function href(view: string, rest = "", query: Record<string, string> = {}): string {
	const search = new URLSearchParams(query).toString();
	return "#/" + view + (rest ? "/" + encodeURIComponent(rest) : "") + (search ? "?" + search : "");
}

export function navigate(view: string, rest = "", query: Record<string, string> = {}): void {
	location.hash = href(view, rest, query);
}

/** Where the page is now. */
export const currentView = (): string => route.value.view;

/** Changes the address to what is shown already, without a new entry in the history. */
export function replace(view: string, rest = "", query: Record<string, string> = {}): void {
	history.replaceState(null, "", href(view, rest, query));
	route.set(parse(location.hash));
}

/** Changes the query of the address without a new entry in the history. */
export function setQuery(changes: Record<string, string | null>): void {
	const { view, rest, query } = route.value;
	const all: Record<string, string> = Object.fromEntries(query);
	for (const [name, value] of Object.entries(changes)) {
		if (value === null || value === "") delete all[name];
		else all[name] = value;
	}
	replace(view, rest, all);
}
