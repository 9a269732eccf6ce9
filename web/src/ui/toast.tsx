import { Store, useStore } from "../core/store";
import { Button } from "./Button";
import { texts } from "../texts";

interface Toast {
	id: number;
	text: string;
	kind: "done" | "error";
}

const toasts = new Store<Toast[]>([]);
const spoken = new Store("");
let lastId = 0;
const shownFor = 6000; // milliseconds; an error stays until it is dismissed

/** Shows a message for a while, and has a screen reader say it. */
export function toast(text: string, kind: Toast["kind"] = "done"): void {
	const id = ++lastId;
	toasts.set([...toasts.value.filter((t) => t.text !== text), { id, text, kind }].slice(-4));
	if (kind === "done") setTimeout(() => dismiss(id), shownFor);
}

/** Has a screen reader say something that is seen elsewhere on the page. */
export function announce(text: string): void {
	spoken.set("");
	setTimeout(() => spoken.set(text), 50); // the same text twice is said twice
}

function dismiss(id: number): void {
	toasts.set(toasts.value.filter((t) => t.id !== id));
}

export function Toasts() {
	const all = useStore(toasts);
	const text = useStore(spoken);
	return (
		<>
			<div class="toasts">
				<div role="status">{all.filter((t) => t.kind === "done").map(one)}</div>
				<div role="alert">{all.filter((t) => t.kind === "error").map(one)}</div>
			</div>
			<div class="visually-hidden" role="status">
				{text}
			</div>
		</>
	);
}

function one({ id, text, kind }: Toast) {
	return (
		<div key={id} class={"toast " + kind}>
			<span>{text}</span>
			<Button kind="quiet" small icon="close" label={texts.dialogs.dismiss} onClick={() => dismiss(id)} />
		</div>
	);
}
