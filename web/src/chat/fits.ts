// Whether models would fit, which the server is asked for one after the other, and only for what is seen.

import { useEffect, useState } from "preact/hooks";
import { post } from "../core/http";
import { can } from "../core/session";
import type { LoadEstimate } from "../core/types";

export type Fit = "fits" | "makes room" | "too large";

const known = new Map<string, { fit: Fit | null; at: number }>();
const lifetime = 30_000; // milliseconds: what is loaded changes

async function ask(model: string, signal: AbortSignal): Promise<Fit | null> {
	const before = known.get(model);
	if (before && Date.now() - before.at < lifetime) return before.fit;
	const fit = await post<LoadEstimate>("/api/v1/models/load", { model, estimate_only: true }, { signal }).then(fitOf, () => null); // such as of another server's
	if (!signal.aborted) known.set(model, { fit, at: Date.now() });
	return fit;
}

function fitOf(e: LoadEstimate): Fit {
	if (!e.fits) return "too large";
	return e.would_unload.length > 0 || e.would_shrink.length > 0 || e.would_unload_others || e.would_wait || e.smaller ? "makes room" : "fits";
}

/** Returns what is known of models that aren't loaded, by their keys. */
export function useFits(keys: readonly string[]): ReadonlyMap<string, Fit> {
	const [fits, setFits] = useState<ReadonlyMap<string, Fit>>(new Map());
	useEffect(() => {
		if (!can("models.manage")) return;
		const ending = new AbortController();
		const run = async () => {
			for (const key of keys) {
				const fit = await ask(key, ending.signal);
				if (ending.signal.aborted) return;
				if (fit) setFits((all) => new Map(all).set(key, fit));
			}
		};
		const timer = setTimeout(() => void run(), 200); // what is typed changes what is seen
		return () => {
			clearTimeout(timer);
			ending.abort();
		};
	}, [keys.join("\n")]);
	return fits;
}
