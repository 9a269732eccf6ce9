import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../ui/Button";
import { Empty } from "../ui/states";
import { useWindow } from "../ui/useWindow";
import type { Chat } from "./chat";
import { FirstSteps } from "./firststeps";
import { branches, path } from "./tree";
import type { Turn } from "./tree";
import { TurnView } from "./turnview";
import { texts } from "../texts";

const gap = 28; // pixels between turns
const nearEnd = 48; // pixels

/** The conversation. It opens at its end, and stays there for a reader who is there. */
export function Turns({ state, hasModels }: { state: Chat; hasModels: boolean }) {
	const { turns, chosen } = state.tree;
	const shown = useMemo(() => path(state.tree), [turns, chosen]);
	if (shown.length === 0) {
		return (
			<div class="beginning">
				<FirstSteps hasModels={hasModels} />
				{hasModels && (
					<Empty icon="chat" title={texts.turn.askAModel}>
						<p>{texts.turn.serverStoresConversationYou}</p>
					</Empty>
				)}
			</div>
		);
	}
	return <List key={state.opened} state={state} shown={shown} />;
}

function List({ state, shown }: { state: Chat; shown: Turn[] }) {
	const list = useRef<HTMLOListElement>(null);
	const end = useEnd(list, shown.length);
	const all = branches(state.tree);
	const isBusy = useSettled(state.running !== "");
	// A branch takes the place of another.
	const pieces = useWindow(list, shown.map((t) => "after " + t.parent), gap, (i) => estimate(shown[i]));
	return (
		<>
			<ol class="turns" aria-label={texts.common.conversation} ref={list}>
				{pieces.map((p) => {
					const turn = "index" in p ? shown[p.index] : undefined;
					if (!turn || !("index" in p)) return <li key={p.key} class="room" aria-hidden="true" style={{ height: "height" in p ? p.height : 0 }} />;
					return (
						<TurnView
							key={p.key}
							place={p.key}
							turn={turn}
							position={p.index + 1}
							size={shown.length}
							siblings={(all.get(turn.parent) ?? []).map((t) => t.id).join(" ")}
							isReadOnly={state.isReadOnly !== ""}
							isBusy={isBusy}
						/>
					);
				})}
			</ol>
			{!end.isThere && (
				<div class="to-end">
					<Button icon="down" label={texts.turn.toTheEnd} onClick={end.go} />
				</div>
			)}
		</>
	);
}

const settleTime = 150; // milliseconds

/** Whether an answer is being written for a moment, so that all turns aren't rendered again just when a question is asked. */
function useSettled(isBusy: boolean): boolean {
	const [isSettled, setSettled] = useState(isBusy);
	useEffect(() => {
		if (!isBusy) return setSettled(false);
		const timer = setTimeout(() => setSettled(true), settleTime);
		return () => clearTimeout(timer);
	}, [isBusy]);
	return isBusy && isSettled;
}

/** About how high a turn is that wasn't rendered yet, in pixels. */
function estimate(turn: Turn | undefined): number {
	if (!turn) return 0;
	const answer = turn.answer.parts.reduce((n, p) => n + (p.kind === "message" ? p.text.length : 100), 0);
	return 150 + Math.ceil((turn.question.text.length + answer) / 90) * 24;
}

const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - nearEnd;

/** Keeps the page at the end of the list, until its reader scrolls up, and again when the reader is back, or asks something. */
function useEnd(list: { current: HTMLElement | null }, count: number) {
	const follows = useRef(true);
	const [isThere, setThere] = useState(true);
	const go = useCallback(() => {
		follows.current = true;
		scrollTo({ top: document.documentElement.scrollHeight });
		setThere(true);
	}, []);
	useLayoutEffect(() => go(), [count]);
	useEffect(() => {
		let before = scrollY;
		const onScroll = () => {
			if (isAtEnd()) follows.current = true;
			else if (scrollY < before) follows.current = false;
			before = scrollY;
			setThere(follows.current || isAtEnd());
		};
		const sizes = new ResizeObserver(() => (follows.current ? go() : onScroll()));
		if (list.current) sizes.observe(list.current);
		addEventListener("scroll", onScroll, { passive: true });
		return () => {
			sizes.disconnect();
			removeEventListener("scroll", onScroll);
		};
	}, []);
	return { isThere, go };
}
