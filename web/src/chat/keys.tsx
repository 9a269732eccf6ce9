import { useEffect, useRef } from "preact/hooks";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { texts } from "../texts";

/** What the keys of the chat do. Each returns whether there was something to do. */
export interface Actions {
	search: () => boolean;
	begin: () => boolean;
	editLast: () => boolean;
	help: () => boolean;
}

const control = /Mac|iP/.test(navigator.platform) ? "⌘" : texts.keys.ctrl;

const keys: readonly [string, string][] = [
	[`${control} K`, texts.common.searchConversations],
	[`${control} ${texts.keys.shift} O`, texts.common.newChat],
	["↑", texts.keys.editLastQuestionEmpty],
	[texts.keys.enter, texts.common.send],
	[`${texts.keys.shift} ${texts.keys.enter}`, texts.keys.beginANewLine],
	[texts.keys.escape, texts.keys.stopAnswerLeaveQuestion],
	["?", texts.keys.showTheseKeys],
];

function isField(e: EventTarget | null): e is HTMLElement {
	return e instanceof HTMLElement && e.matches("input, textarea, select, [contenteditable]");
}

function actionOf(e: KeyboardEvent): keyof Actions | null {
	const hasControl = e.ctrlKey || e.metaKey;
	if (hasControl && !e.altKey && !e.shiftKey && e.key.toLowerCase() === "k") return "search";
	if (hasControl && !e.altKey && e.shiftKey && e.key.toLowerCase() === "o") return "begin";
	if (hasControl || e.altKey) return null;
	if (e.key === "?" && !isField(e.target)) return "help";
	const isEmpty = e.target instanceof HTMLTextAreaElement && e.target.matches(".composer textarea") && e.target.value === "";
	return e.key === "ArrowUp" && !e.shiftKey && isEmpty ? "editLast" : null;
}

/** Has the keys do something while the chat is shown, but not behind a dialog. */
export function useKeys(actions: Actions): void {
	const latest = useRef(actions);
	latest.current = actions;
	useEffect(() => {
		const onKey = (e: KeyboardEvent) => {
			const action = e.defaultPrevented || document.querySelector("dialog[open]") ? null : actionOf(e);
			if (action && latest.current[action]()) e.preventDefault();
		};
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, []);
}

export function KeyHelp({ onClose }: { onClose: () => void }) {
	return (
		<Dialog title={texts.keys.keys} onClose={onClose} onSubmit={onClose} actions={<Button kind="primary" type="submit">{texts.common.close}</Button>}>
			<dl class="keys">
				{keys.map(([key, what]) => (
					<div key={key}>
						<dt>{key.split(" ").map((k) => <kbd key={k}>{k}</kbd>)}</dt>
						<dd>{what}</dd>
					</div>
				))}
			</dl>
		</Dialog>
	);
}
