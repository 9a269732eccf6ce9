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
import { Player } from "./recordings";
import type { Turn } from "./tree";
import { texts } from "../texts";

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
	const wait = isBusy ? texts.turn.waitUntilAnswerComplete : null;
	return (
		<li class="turn" data-key={place} aria-posinset={position} aria-setsize={size}>
			<article class="question" aria-label={texts.common.question}>
				{turn.question.images.length > 0 && (
					<div class="images">
						{turn.question.images.map((url, i) => (
							<img key={i} src={url.startsWith("data:image/") ? url : ""} alt={texts.turn.imageOfTheQuestion(i + 1)} />
						))}
					</div>
				)}
				{turn.question.recordings?.map((r, i) => (
					<Player key={i} of={r} label={texts.turn.recording(i + 1)} />
				))}
				{edited === "question" ? <Editor turn={turn} wait={wait} /> : <Asked text={turn.question.text} />}
				{edited !== "question" && (
					<div class="turn-actions">
						<Branches turn={turn} siblings={siblings.split(" ")} />
						<Copy text={turn.question.text} label={texts.turn.copyQuestion} />
						{!isReadOnly && (
							<Button
								kind="quiet"
								small
								icon="edit"
								class="edit-question"
								label={texts.turn.editQuestion}
								disabledFor={wait}
								onClick={() => edit.set({ turn: turn.id, of: "question", text: turn.question.text })}
							/>
						)}
					</div>
				)}
			</article>
			<article key={turn.id} class="reply" aria-label={texts.turn.answerOfInstance(turn.answer.instance || turn.model)}>
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
			{isForgotten(turn.answer) && <p class="muted hint">{texts.turn.notStoredLaterQuestions}</p>}
			<div class="turn-actions">
				<Figures answer={turn.answer} />
				<span class="turn-buttons">
					{text && <Copy text={() => textOf(turn)} label={texts.turn.copyAnswer} />}
					{!isReadOnly && (
						<>
							{text && turn.answer.responseId && (
								<Button
									kind="quiet"
									small
									icon="edit"
									class="edit-answer"
									label={texts.turn.editAnswer}
									disabledFor={wait}
									onClick={() => edit.set({ turn: turn.id, of: "answer", text })}
								/>
							)}
							<Button kind="quiet" small icon="refresh" label={texts.common.askAgain} disabledFor={wait} onClick={() => (focusMain(), askAgain(turn))} />
							<Button kind="quiet" small icon="models" label={texts.common.askAnotherModel} disabledFor={wait} onClick={() => otherModelFor.set(turn)} />
							{cutText(turn.answer) && turn.answer.responseId && (
								<Button small icon="play" disabledFor={wait} onClick={() => (focusMain(), void goOn(turn))}>{texts.common.continue}</Button>
							)}
						</>
					)}
				</span>
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
		<span class="branches" role="group" aria-label={texts.turn.branches}>
			<Button
				kind="quiet"
				small
				icon="left"
				label={texts.turn.previousBranch}
				disabledFor={at === 0 ? texts.turn.firstBranch : null}
				onClick={() => show(at - 1)}
			/>
			<span class="tabular">
				{at + 1} / {siblings.length}
			</span>
			<Button
				kind="quiet"
				small
				icon="right"
				label={texts.turn.nextBranch}
				disabledFor={at === siblings.length - 1 ? texts.turn.lastBranch : null}
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
	const isEmpty = text.trim() === "" && (of === "answer" || (turn.question.images.length === 0 && !turn.question.recordings?.length));
	const refusal = wait ?? (isEmpty ? of === "answer" ? texts.turn.typeAnswerFirst : texts.composer.typeAQuestionFirst : null);
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
				aria-label={of === "answer" ? texts.turn.editTheAnswer : texts.turn.editTheQuestion}
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
				<Button small onClick={cancel}>{texts.common.cancel}</Button>
				{of === "answer" && (
					<Button small icon="play" disabledFor={refusal} onClick={() => leave(() => askAgain(turn, { prefill: text }))}>{texts.turn.modelGo}</Button>
				)}
				<Button small kind="primary" type="submit" disabledFor={refusal}>
					{of === "answer" ? texts.turn.saveNewBranch : texts.turn.askNewBranch}
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
					<a class="button small" href={href("logs", "", { request: turn.answer.requestId, level: "debug" })}>{texts.turn.log}</a>
				)}
				{isFinal && !isReadOnly && failure.code === lostConversation && (
					<Button small icon="plus" onClick={() => (focusMain(), askAnew(turn))}>{texts.turn.askNewConversation}</Button>
				)}
				{isFinal && !isReadOnly && failure.code !== lostConversation && (
					<Button small icon="refresh" onClick={() => (focusMain(), askAgain(turn))}>{texts.turn.retry}</Button>
				)}
			</span>
		</div>
	);
}
