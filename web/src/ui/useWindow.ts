// Lists of any length: only what is near the part of the page that is seen is rendered, so that a long list costs no more than a short one.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Something to render: the item at an index, or room for those that aren't rendered. */
export type Piece = { key: string; index: number } | { key: string; height: number };

const nearby = 1; // heights of the window above and below what is seen

/**
 * Returns what to render of a list in the document, whose items are elements with their keys in data-key, one below the other with gaps.
 * An item that has the focus stays. At first, the end of the list is rendered.
 */
export function useWindow(list: RefObject<HTMLElement | null>, keys: readonly string[], gap: number, estimate: (index: number) => number): Piece[] {
	const heights = useRef(new Map<string, number>()).current;
	const [range, setRange] = useState({ from: keys.length - 4, to: keys.length });
	const held = useRef("");
	const looks = useRef<{ look: () => void; observe: (e: Element) => void } | null>(null);
	const latest = useRef({ keys, estimate, range });
	latest.current = { keys, estimate, range };
	const heightOf = (i: number) => (heights.get(keys[i] ?? "") ?? estimate(i)) + gap;

	useLayoutEffect(() => {
		const sizes = new ResizeObserver((all) => {
			for (const { target, borderBoxSize } of all) {
				const key = (target as HTMLElement).dataset["key"];
				if (key !== undefined && target.isConnected) heights.set(key, borderBoxSize[0]?.blockSize ?? 0);
			}
			look();
		});
		const look = () => {
			const top = list.current?.getBoundingClientRect().top;
			if (top === undefined) return;
			const now = latest.current;
			let from = -1;
			let to = 0;
			for (let i = 0, y = top; i < now.keys.length && y < (1 + nearby) * innerHeight; i++) {
				y += (heights.get(now.keys[i] ?? "") ?? now.estimate(i)) + gap;
				if (y < -nearby * innerHeight) continue;
				if (from < 0) from = i;
				to = i + 1;
			}
			if (from < 0) from = to = Math.max(0, now.keys.length - 1);
			held.current = document.activeElement?.closest<HTMLElement>("[data-key]")?.dataset["key"] ?? "";
			if (from !== now.range.from || to !== now.range.to) setRange((latest.current.range = { from, to }));
		};
		looks.current = { look, observe: (e: Element) => sizes.observe(e) };
		addEventListener("scroll", look, { passive: true });
		addEventListener("resize", look);
		return () => {
			sizes.disconnect();
			removeEventListener("scroll", look);
			removeEventListener("resize", look);
		};
	}, []);
	useLayoutEffect(() => {
		for (const item of list.current?.children ?? []) if (item instanceof HTMLElement && item.dataset["key"] !== undefined) looks.current?.observe(item);
	});
	useLayoutEffect(() => looks.current?.look(), [keys.length]);

	const pieces: Piece[] = [];
	let room = 0;
	for (const [index, key] of keys.entries()) {
		// What was added at the end is seen next.
		const isWanted = (index >= range.from && index < range.to) || index === keys.length - 1 || key === held.current;
		if (!isWanted) {
			room += heightOf(index);
			continue;
		}
		if (room > 0) pieces.push({ key: "room before " + key, height: room - gap });
		room = 0;
		pieces.push({ key, index });
	}
	return pieces;
}
