import { formatDuration, formatNumber, formatPercent, formatRate } from "../core/format";
import { href } from "../core/router";
import { Button } from "../ui/Button";
import { Progress } from "../ui/Meter";
import { Badge } from "../ui/states";
import { useState } from "preact/hooks";
import { isRunning } from "./answer";
import type { Answer, CallPart, TextPart } from "./answer";
import { decide } from "./approval";
import { Markdown, Plain } from "./markdown";
import { texts } from "../texts";

/** An answer as far as there is one. */
export function AnswerView({ answer }: { answer: Answer }) {
	const isGoing = isRunning(answer);
	return (
		<div class="answer" aria-busy={isGoing}>
			{answer.parts.map((p, i) => {
				if (p.kind === "call") return <Call key={i} call={p} answer={answer} />;
				if (p.kind === "reasoning") return <Thinking key={i} part={p} isLast={i === answer.parts.length - 1} />;
				return <Markdown key={i} text={p.text} done={p.done} />;
			})}
			{isGoing && <Waiting answer={answer} />}
			{answer.phase === "done" && answer.parts.length === 0 && <p class="muted">{texts.answer.modelAnsweredNothing}</p>}
			{answer.phase === "failed" && answer.failures.length === 0 && <p class="muted">{texts.answer.answerFailedBeforeComplete}</p>}
			{answer.phase === "stopped" && <p class="muted">{answer.status === "cancelled" ? texts.answer.stoppedByServer : texts.answer.stopped}</p>}
			{answer.phase === "done" && answer.status === "incomplete" && <p class="muted">{texts.answer.cutShortLimitTokens}</p>}
		</div>
	);
}

/** What is happening before something is seen of the answer. */
function Waiting({ answer }: { answer: Answer }) {
	switch (answer.phase) {
		case "loading":
			return <Stage text={texts.answer.loadingInstance(answer.instance)} value={answer.progress} />;
		case "prompt":
			return <Stage text={texts.answer.readingThePrompt} value={answer.progress} />;
		case "waiting":
			return <p class="stage muted">{texts.answer.waitingForTheModel}</p>;
		default:
			return answer.parts.length === 0 ? <p class="stage muted">{texts.answer.writing}</p> : null;
	}
}

function Stage({ text, value }: { text: string; value: number }) {
	return (
		<div class="stage">
			<span class="muted">{text}</span>
			<Progress label={text} value={value} />
		</div>
	);
}

/** What the model thinks. It is open while that is all there is to see, unless its reader decides otherwise. */
function Thinking({ part, isLast }: { part: TextPart; isLast: boolean }) {
	const [chosen, setChosen] = useState<boolean | null>(null);
	const isOpen = chosen ?? (isLast && !part.done);
	return (
		<details class="thinking" open={isOpen}>
			<summary
				onClick={(e) => {
					e.preventDefault();
					setChosen(!isOpen);
				}}
			>
				{part.done ? texts.answer.thoughts : texts.answer.thinking}
			</summary>
			{isOpen && <Plain text={part.text} label={texts.answer.thoughts} />}
		</details>
	);
}

const tones = { writing: "busy", waiting: "warning", running: "busy", done: "good", failed: "bad" } as const;
const states = { writing: texts.answer.beingWritten, waiting: texts.answer.waitsForYou, running: texts.requests.lowerRunning, done: texts.markdown.done, failed: texts.answer.lowerFailed } as const;

/** A call of a tool. It is open while it waits for its approval. */
function Call({ call, answer }: { call: CallPart; answer: Answer }) {
	const args = call.arguments === undefined ? "" : JSON.stringify(call.arguments);
	const isWaiting = call.status === "waiting";
	const images = imagesOf(call.output);
	return (
		<>
			<details class="call" open={isWaiting || undefined}>
				<summary>
					<span class="call-name">{call.tool || texts.answer.unknownTool}</span>
					{call.server && <span class="muted">{call.server}</span>}
					<span class="call-arguments mono muted">{args.length > 120 ? args.slice(0, 120) + "…" : args}</span>
					<Badge tone={tones[call.status]}>{states[call.status]}</Badge>
				</summary>
				<dl>
					{args && <Detail name={texts.common.arguments} text={JSON.stringify(call.arguments, null, 2)} />}
					{call.output !== undefined && <Detail name={texts.answer.result} text={textOfResult(call.output)} />}
					{call.reason && <Detail name={texts.answer.whyItFailed} text={call.reason} />}
				</dl>
			</details>
			{isWaiting && (
				<div class="actions" role="group" aria-label={texts.answer.mayTheModelCall(call.tool)}>
					<Button small kind="primary" icon="check" onClick={() => decide(answer, call, true)}>{texts.answer.allowOnce}</Button>
					<Button small onClick={() => decide(answer, call, true, true)}>{texts.answer.alwaysAllowTool(call.tool)}</Button>
					<Button small icon="close" onClick={() => decide(answer, call, false)}>{texts.answer.refuse}</Button>
				</div>
			)}
			{images.length > 0 && (
				<div class="images">
					{images.map((url, i) => (
						<img key={i} src={url} alt={texts.answer.imageOf(i + 1, call.tool)} />
					))}
				</div>
			)}
		</>
	);
}

interface Content {
	type?: string;
	text?: string;
	data?: string;
	mimeType?: string;
}

/** Returns the images of a result as data URLs. */
function imagesOf(output: string | undefined): string[] {
	if (!output?.includes('"image')) return [];
	const isShown = (c: Content) => c?.type === "image" && /^image\/(?:png|jpeg|webp|gif)$/.test(c.mimeType ?? "") && /^[A-Za-z0-9+/=]+$/.test(c.data ?? "");
	return (contentOf(output) ?? []).filter(isShown).map((c) => `data:${c.mimeType};base64,${c.data}`);
}

function Detail({ name, text }: { name: string; text: string }) {
	return (
		<>
			<dt>{name}</dt>
			<dd>
				<Plain text={text} class="call-text" label={name} />
			</dd>
		</>
	);
}

/** Returns the texts of a result and what else it has, or all of it if it is nothing that is known. */
function textOfResult(output: string): string {
	const content = contentOf(output);
	if (!content) return output;
	const known = content.every((c) => typeof c?.text === "string" || c?.type === "image");
	if (!known) return JSON.stringify(content, null, 2);
	return content.map((c) => c.text ?? texts.answer.shownBelowMimeType(c.mimeType ?? texts.markdown.image)).join("\n");
}

/** Returns the content of a result, which is JSON; null: it is something else. */
function contentOf(output: string): Content[] | null {
	try {
		const content: unknown = JSON.parse(output);
		return Array.isArray(content) ? (content as Content[]) : null;
	} catch {
		return null;
	}
}

/** How fast an answer was, and what it took. */
export function Figures({ answer }: { answer: Answer }) {
	const { stats, cachedTokens, queueSeconds } = answer;
	if (!stats) return null;
	const facts: string[] = [];
	if (stats.tokens_per_second > 0) facts.push(texts.answer.speed(formatRate(stats.tokens_per_second)));
	if (stats.time_to_first_token_seconds > 0) facts.push(texts.answer.firstTokenAfter(formatDuration(stats.time_to_first_token_seconds)));
	facts.push(texts.answer.tokensIn(formatNumber(stats.input_tokens), cachedTokens ? formatNumber(cachedTokens) : ""));
	facts.push(texts.answer.tokensOut(formatNumber(stats.total_output_tokens), stats.reasoning_output_tokens ? formatNumber(stats.reasoning_output_tokens) : ""));
	if (stats.model_load_time_seconds) facts.push(texts.answer.loadedInModelLoad(formatDuration(stats.model_load_time_seconds)));
	if (queueSeconds && queueSeconds >= 0.05) facts.push(texts.answer.queuedForQueueSeconds(formatDuration(queueSeconds)));
	return (
		<p class="figures">
			{facts.map((f) => (
				<span key={f}>{f}</span>
			))}
			{stats.context_length ? <ContextUsed used={Math.min(stats.input_tokens + stats.total_output_tokens, stats.context_length)} length={stats.context_length} /> : null}
			{answer.requestId && <a href={href("requests", "", { id: answer.requestId })}>{texts.common.request}</a>}
		</p>
	);
}

function ContextUsed({ used, length }: { used: number; length: number }) {
	const text = texts.answer.ofTokensOfContext(formatNumber(used), formatNumber(length));
	return (
		<span class="context-used" title={text}>
			<progress aria-label={text} max={length} value={used} /> {texts.answer.ofContext(used > 0 && used < length / 100 ? "<1 %" : formatPercent(used / length))}
		</span>
	);
}
