import { memo } from "preact/compat";
import { useLayoutEffect, useRef } from "preact/hooks";
import { messageOf } from "../core/http";
import { href } from "../core/router";
import { useStore } from "../core/store";
import { Button } from "../ui/Button";
import { Copy } from "../ui/Copy";
import { focusMain } from "../ui/focus";
import { toast } from "../ui/toast";
import { cutText, isRunning } from "./answer";
import type { Answer, Failure } from "./answer";
import { AnswerView, Figures } from "./answerview";
import { askAgain, askAnew, chat, goOn, lostConversation, saveAnswer, showBranch, whyLost } from "./chat";
import { edit, otherModelFor } from "./draft";
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
	const edited = editing?.turn === turn.id ? editing.of : null;
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
				{edited === "question" ? <Editor turn={turn} wait={wait} /> : <Asked text={turn.question.text} />}
				{edited !== "question" && (
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
								onClick={() => edit.set({ turn: turn.id, of: "question", text: turn.question.text })}
							/>
						)}
					</div>
				)}
			</article>
			<article key={turn.id} class="reply" aria-label={`Answer of ${turn.answer.instance || turn.model}`}>
				<p class="reply-model muted">{turn.answer.instance || turn.model}</p>
				{edited === "answer" ? <Editor turn={turn} wait={wait} /> : <AnswerView answer={turn.answer} />}
				{turn.answer.failures.map((f, i) => (
					<FailureNote key={i} failure={f} turn={turn} isReadOnly={isReadOnly} />
				))}
				{!isRunning(turn.answer) && edited !== "answer" && <Actions turn={turn} wait={wait} isReadOnly={isReadOnly} />}
			</article>
		</li>
	);
});

/** What can be done with an answer that has ended. */
function Actions({ turn, wait, isReadOnly }: { turn: Turn; wait: string | null; isReadOnly: boolean }) {
	const text = textOf(turn);
	return (
		<>
			{isForgotten(turn.answer) && <p class="muted hint">Not stored: later questions don't know of it.</p>}
			<div class="turn-actions">
				<Figures answer={turn.answer} />
				{text && <Copy text={() => textOf(turn)} label="Copy answer" />}
				{!isReadOnly && (
					<>
						{text && turn.answer.responseId && (
							<Button
								kind="quiet"
								small
								icon="edit"
								class="edit-answer"
								label="Edit answer"
								disabledFor={wait}
								onClick={() => edit.set({ turn: turn.id, of: "answer", text })}
							/>
						)}
						<Button kind="quiet" small icon="refresh" label="Ask again" disabledFor={wait} onClick={() => (focusMain(), askAgain(turn))} />
						<Button kind="quiet" small icon="models" label="Ask another model" disabledFor={wait} onClick={() => otherModelFor.set(turn)} />
						{cutText(turn.answer) && turn.answer.responseId && (
							<Button small icon="play" disabledFor={wait} onClick={() => (focusMain(), void goOn(turn))}>
								Continue
							</Button>
						)}
					</>
				)}
			</div>
		</>
	);
}

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

/** Changes a question, and asks it in a new branch; or an answer, which is kept in one. */
function Editor({ turn, wait }: { turn: Turn; wait: string | null }) {
	const editing = useStore(edit);
	const area = useRef<HTMLTextAreaElement>(null);
	useLayoutEffect(() => { // before anything is typed
		area.current?.focus();
		area.current?.setSelectionRange(area.current.value.length, area.current.value.length);
	}, []);
	const text = editing?.text ?? "";
	const of = editing?.of ?? "question";
	const cancel = () => {
		const item = area.current?.closest("li");
		edit.set(null);
		requestAnimationFrame(() => item?.querySelector<HTMLElement>(".edit-" + of)?.focus());
	};
	const isEmpty = text.trim() === "" && (of === "answer" || turn.question.images.length === 0);
	const refusal = wait ?? (isEmpty ? `Type ${of === "answer" ? "an answer" : "a question"} first.` : null);
	const leave = (then: () => unknown) => {
		if (refusal) return;
		edit.set(null);
		focusMain();
		return then();
	};
	const submit = () => leave(() => (of === "answer" ? saveAnswer(turn, text).catch((e) => toast(messageOf(e), "error")) : askAgain(turn, { question: { ...turn.question, text } })));
	return (
		<form
			class="editor"
			onSubmit={(e) => {
				e.preventDefault();
				submit();
			}}
		>
			<textarea
				ref={area}
				aria-label={`Edit the ${of}`}
				value={text}
				rows={of === "answer" ? 8 : 3}
				onInput={(e) => edit.set({ turn: turn.id, of, text: e.currentTarget.value })}
				onKeyDown={(e) => {
					if (e.key === "Escape") {
						e.stopPropagation();
						cancel();
					} else if (e.key === "Enter" && !e.isComposing && (of === "question" ? !e.shiftKey : e.ctrlKey || e.metaKey)) {
						e.preventDefault();
						submit();
					}
				}}
			/>
			<div class="actions">
				<Button small onClick={cancel}>
					Cancel
				</Button>
				{of === "answer" && (
					<Button small icon="play" disabledFor={refusal} onClick={() => leave(() => askAgain(turn, { prefill: text }))}>
						Have the model go on
					</Button>
				)}
				<Button small kind="primary" type="submit" disabledFor={refusal}>
					{of === "answer" ? "Save in a new branch" : "Ask in a new branch"}
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
