import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Store, useStore } from "../core/store";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { TextField } from "./Field";
import { texts } from "../texts";

interface Question {
	title: string;
	text: ComponentChildren;
	/** What the button says. */
	action: string;
	/** What the button says that does nothing; absent: Cancel. */
	refusal?: string;
	danger?: boolean;
	/** What has to be typed first. */
	typed?: string;
}

const asked = new Store<(Question & { answer: (yes: boolean) => void }) | null>(null);

/** Asks before something that can't be undone. */
export function confirm(question: Question): Promise<boolean> {
	asked.value?.answer(false);
	return new Promise((resolve) => asked.set({ ...question, answer: (yes) => (asked.set(null), resolve(yes)) }));
}

export function Confirmation() {
	const question = useStore(asked);
	return question && <Asking key={question.title} {...question} />;
}

function Asking({ title, text, action, refusal = texts.common.cancel, danger, typed, answer }: Question & { answer: (yes: boolean) => void }) {
	const [input, setInput] = useState("");
	const isReady = !typed || input.trim() === typed;
	return (
		<Dialog
			title={title}
			onClose={() => answer(false)}
			onSubmit={() => isReady && answer(true)}
			actions={
				<>
					<Button onClick={() => answer(false)}>{refusal}</Button>
					<Button type="submit" kind={danger ? "danger" : "primary"} disabledFor={isReady ? null : texts.dialogs.typeFirstTyped(typed)}>
						{action}
					</Button>
				</>
			}
		>
			<div class="prose">{text}</div>
			{typed && <TextField label={texts.dialogs.typeToConfirm(typed)} value={input} onInput={setInput} />}
		</Dialog>
	);
}
