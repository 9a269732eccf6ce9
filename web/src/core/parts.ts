import { useEffect, useState } from "preact/hooks";
import type * as Highlight from "../parts/highlight";
import type * as MathPart from "../parts/math";
import type * as Pdf from "../parts/pdf";

/** What isn't in the page itself, since most visits don't need it. It comes from the page's own server. */
interface Parts {
	highlight: typeof Highlight;
	math: typeof MathPart;
	pdf: typeof Pdf;
}

const loaded: Partial<Parts> = {};

/** Returns a part once it is there. */
export async function load<Name extends keyof Parts>(name: Name): Promise<Parts[Name]> {
	const address = `/page/${name}.js`; // not a literal, which would be bundled
	return (loaded[name] ??= (await import(address)) as Parts[Name]);
}

/** Returns a part, or null until it is there. It is loaded if it is wanted; if it can't be, it stays null. */
export function usePart<Name extends keyof Parts>(name: Name, isWanted: boolean): Parts[Name] | null {
	const [part, setPart] = useState<Parts[Name] | null>(() => loaded[name] ?? null);
	useEffect(() => {
		if (isWanted && !part) load(name).then((p) => setPart(() => p), () => undefined);
	}, [name, isWanted]);
	return part;
}
