import { memo } from "preact/compat";
import { useLayoutEffect, useRef } from "preact/hooks";
import { href } from "../core/router";
import { useStore } from "../core/store";
import { Button } from "../ui/Button";
import { Copy } from "../ui/Copy";
import { focusMain } from "../ui/focus";
import { isRunning } from "./answer";
import type { Answer, Failure } from "./answer";
import { AnswerView, Figures } from "./answerview";
import { askAgain, askAnew, chat, lostConversation, showBranch, whyLost } from "./chat";
import { edit } from "./draft";
import { splitFiles } from "./files";
import { Plain } from "./markdown";
import type { Turn } from "./tree";

interface Props {
	turn: Turn;
	place: string; // among the turns; branches have the same
	position: number;
	size: number; // how many turns there are
	siblings: string; // the ids of all branches, joined by spaces: a text, so that memo can compare it
	isReadOnly: boolean;
	isBusy: boolean; // an answer is being written
}

/** A question with its answer. */
export const TurnView = memo(function TurnView({ turn, place, position, size, siblings, isReadOnly, isBusy }: Props) {
	const editing = useStore(edit);
	const isEditing = editing?.turn === turn.id;
	const wait = isBusy ? "Wait until the answer is complete, or stop it." : null;
	return (
		<li class="turn" data-key={place} aria-posinset={position} aria-setsize={size}>
			<article class="question" aria-label="Question">
				{turn.question.images.length > 0 && (
					<div class="images">
						{turn.question.images.map((url, i) => (
							<img key={i} src={url.startsWith("data:image/") ? url : ""} alt={`Image ${i + 1} of the question`} />
						))}
					</div>
				)}
				{isEditing ? <Editor turn={turn} wait={wait} /> : <Asked text={turn.question.text} />}
				{!isEditing && (
					<div class="turn-actions">
						<Branches turn={turn} siblings={siblings.split(" ")} />
						<Copy text={turn.question.text} label="Copy question" />
						{!isReadOnly && (
							<Button
								kind="quiet"
								small
								icon="edit"
								class="edit-question"
								label="Edit question"
								disabledFor={wait}
								onClick={() => edit.set({ turn: turn.id, text: turn.question.text })}
							/>
						)}
					</div>
				)}
			</article>
			<article key={turn.id} class="reply" aria-label={`Answer of ${turn.answer.instance || turn.model}`}>
				<p class="reply-model muted">{turn.answer.instance || turn.model}</p>
				<AnswerView answer={turn.answer} />
				{turn.answer.failures.map((f, i) => (
					<FailureNote key={i} failure={f} turn={turn} isReadOnly={isReadOnly} />
				))}
				{!isRunning(turn.answer) && (
					<>
						{isForgotten(turn.answer) && <p class="muted hint">Not stored: later questions don't know of it.</p>}
						<div class="turn-actions">
							<Figures answer={turn.answer} />
							{textOf(turn) && <Copy text={() => textOf(turn)} label="Copy answer" />}
							{!isReadOnly && <Button kind="quiet" small icon="refresh" label="Ask again" disabledFor={wait} onClick={() => (focusMain(), askAgain(turn))} />}
						</div>
					</>
				)}
			</article>
		</li>
	);
});

/** A question's text, with its files folded. */
const Asked = memo(function Asked({ text: all }: { text: string }) {
	const { text, files } = splitFiles(all);
	return (
		<>
			{files.map((f, i) => (
				<details key={i} class="file">
					<summary>{f.name}</summary>
					<Plain text={f.text} class="call-text" label={f.name} />
				</details>
			))}
			{text && <Plain text={text} />}
		</>
	);
});

/** Reports whether later questions don't continue an answer. Of one that was stopped, that is found out later. */
function isForgotten(a: Answer): boolean {
	return !a.responseId && a.phase !== "failed" && (a.phase !== "stopped" || a.status !== "");
}

function textOf(turn: Turn): string {
	return turn.answer.parts
		.map((p) => (p.kind === "message" ? p.text : ""))
		.filter(Boolean)
		.join("\n\n");
}

function Branches({ turn, siblings }: { turn: Turn; siblings: string[] }) {
	if (siblings.length < 2) return null;
	const at = siblings.indexOf(turn.id);
	const show = (i: number) => {
		const other = chat.value.tree.turns.get(siblings[i] ?? "");
		if (other) showBranch(other);
	};
	return (
		<span class="branches" role="group" aria-label="Branches">
			<Button
				kind="quiet"
				small
				icon="left"
				label="Previous branch"
				disabledFor={at === 0 ? "This is the first branch." : null}
				onClick={() => show(at - 1)}
			/>
			<span class="tabular">
				{at + 1} / {siblings.length}
			</span>
			<Button
				kind="quiet"
				small
				icon="right"
				label="Next branch"
				disabledFor={at === siblings.length - 1 ? "This is the last branch." : null}
				onClick={() => show(at + 1)}
			/>
		</span>
	);
}

/** Changes a question, and asks it in a new branch. */
function Editor({ turn, wait }: { turn: Turn; wait: string | null }) {
	const editing = useStore(edit);
	const area = useRef<HTMLTextAreaElement>(null);
	useLayoutEffect(() => { // before anything is typed
		area.current?.focus();
		area.current?.setSelectionRange(area.current.value.length, area.current.value.length);
	}, []);
	const text = editing?.text ?? "";
	const cancel = () => {
		const item = area.current?.closest("li");
		edit.set(null);
		requestAnimationFrame(() => item?.querySelector<HTMLElement>(".edit-question")?.focus());
	};
	const isEmpty = text.trim() === "" && turn.question.images.length === 0;
	const ask = () => {
		if (wait || isEmpty) return;
		edit.set(null);
		focusMain();
		askAgain(turn, { ...turn.question, text });
	};
	return (
		<form
			class="editor"
			onSubmit={(e) => {
				e.preventDefault();
				ask();
			}}
		>
			<textarea
				ref={area}
				aria-label="Edit the question"
				value={text}
				rows={3}
				onInput={(e) => edit.set({ turn: turn.id, text: e.currentTarget.value })}
				onKeyDown={(e) => {
					if (e.key === "Escape") {
						e.stopPropagation();
						cancel();
					} else if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
						e.preventDefault();
						ask();
					}
				}}
			/>
			<div class="actions">
				<Button small onClick={cancel}>
					Cancel
				</Button>
				<Button small kind="primary" type="submit" disabledFor={wait ?? (isEmpty ? "Type a question first." : null)}>
					Ask in a new branch
				</Button>
			</div>
		</form>
	);
}

function FailureNote({ failure, turn, isReadOnly }: { failure: Failure; turn: Turn; isReadOnly: boolean }) {
	const isFinal = turn.answer.phase === "failed" && failure === turn.answer.failures.at(-1);
	return (
		<div class={"note " + (isFinal ? "error" : "warning")}>
			<span>
				{failure.code === lostConversation ? whyLost() : failure.message}
				{failure.code && <span class="muted mono"> {failure.code}</span>}
			</span>
			<span class="actions">
				{turn.answer.requestId && (
					<a class="button small" href={href("logs", "", { request: turn.answer.requestId, level: "debug" })}>
						Log
					</a>
				)}
				{isFinal && !isReadOnly && failure.code === lostConversation && (
					<Button small icon="plus" onClick={() => (focusMain(), askAnew(turn))}>
						Ask in a new conversation
					</Button>
				)}
				{isFinal && !isReadOnly && failure.code !== lostConversation && (
					<Button small icon="refresh" onClick={() => (focusMain(), askAgain(turn))}>
						Retry
					</Button>
				)}
			</span>
		</div>
	);
}
