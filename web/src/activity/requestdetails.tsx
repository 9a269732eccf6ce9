import { formatDuration, formatNumber, formatRate, formatTime } from "../core/format";
import { ApiError, segment } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import { useCan } from "../core/session";
import type { components } from "../schema";
import { Plain } from "../chat/markdown";
import { Copy } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { Fact, Facts, Failure, Loading, Note } from "../ui/states";
import { isRunning, speed, type Request } from "./requestlist";
import { texts } from "../texts";

type Whole = components["schemas"]["WholeRequest"];
type Message = components["schemas"]["HTTPMessage"];

/** All that is known of a request. */
export function RequestDetails({ id, request, onClose }: { id: string; request: Request | undefined; onClose: () => void }) {
	const isAdmin = useCan("admin");
	return (
		<Dialog title={texts.common.request} wide onClose={onClose}>
			{request ? <Summary request={request} /> : <p class="muted">{texts.request.requestAmongNewestOnes}</p>}
			{isAdmin && (
				<p>
					<a class="button small" href={href("logs", "", { request: id, level: "debug" })}>{texts.request.linesLog}</a>
				</p>
			)}
			{isAdmin ? (
				<Bodies id={id} isDone={!request || !isRunning(request)} />
			) : (
				<p class="muted">{texts.request.administratorsCanSeeWhole}</p>
			)}
		</Dialog>
	);
}

function Summary({ request: r }: { request: Request }) {
	const tokensPerSecond = speed(r);
	return (
		<Facts>
			<Fact name={texts.request.id}>
				<span class="row">
					<code>{r.id}</code>
					<Copy text={r.id} label={texts.request.copyId} />
				</span>
			</Fact>
			<Fact name={texts.common.arrived}>{formatTime(r.arrived_at)}</Fact>
			<Fact name={texts.common.outcome}>{isRunning(r) ? texts.request.inProgress : r.outcome}</Fact>
			<Fact name={texts.common.status}>{r.status || ""}</Fact>
			<Fact name={texts.common.request}>
				{r.method} {r.path}
			</Fact>
			<Fact name={texts.common.api}>{r.dialect}</Fact>
			<Fact name={texts.common.model}>{r.model}</Fact>
			<Fact name={texts.common.instance}>{r.instance && <a href={href("logs", "", { instance: r.instance, level: "debug" })}>{r.instance}</a>}</Fact>
			<Fact name={texts.common.token}>{r.token_name || r.owner}</Fact>
			<Fact name={texts.request.streamed}>{r.stream ? texts.request.yes : texts.request.no}</Fact>
			<Fact name={texts.common.took}>{r.duration_seconds !== undefined && formatDuration(r.duration_seconds)}</Fact>
			<Fact name={texts.request.queuedFor}>{r.queue_seconds !== undefined && formatDuration(r.queue_seconds)}</Fact>
			<Fact name={texts.request.loadedTheModelIn}>{r.load_seconds && formatDuration(r.load_seconds)}</Fact>
			<Fact name={texts.request.restoredSavedState}>{r.restore_seconds && formatDuration(r.restore_seconds)}</Fact>
			<Fact name={texts.request.firstTokenAfter}>{r.time_to_first_token_seconds && formatDuration(r.time_to_first_token_seconds)}</Fact>
			<Fact name={texts.common.tokensPerSecond}>{tokensPerSecond && formatRate(tokensPerSecond)}</Fact>
			<Fact name={texts.common.tokensIn}>{r.input_tokens !== undefined && formatNumber(r.input_tokens)}</Fact>
			<Fact name={texts.request.ofTheseCached}>{r.cached_tokens && formatNumber(r.cached_tokens)}</Fact>
			<Fact name={texts.common.tokensOut}>{r.output_tokens !== undefined && formatNumber(r.output_tokens)}</Fact>
			<Fact name={texts.request.toolCalls}>{r.tool_calls && formatNumber(r.tool_calls)}</Fact>
		</Facts>
	);
}

/** What was sent and answered, if the server keeps that. */
function Bodies({ id, isDone }: { id: string; isDone: boolean }) {
	const whole = useResource<Whole>("/api/v1/requests/" + segment(id), { query: {}, events: isDone ? [] : ["request.end"] });
	if (whole.error instanceof ApiError && whole.error.code === "inspection_off") {
		return (
			<Note>
				<span>{texts.request.seeClientsSendGet(<code>inspect 100</code>, <code>lm</code>, <code>lmcaddy reload</code>)}</span>
			</Note>
		);
	}
	if (whole.error instanceof ApiError && whole.error.code === "request_not_found")
		return <p class="muted">{texts.request.amongRequestsKeptWhole}</p>;
	if (whole.error) return <Failure error={whole.error} retry={whole.reload} />;
	if (!whole.data) return <Loading />;
	return (
		<>
			<Part name={texts.request.requestOfTheClient} message={whole.data.request} />
			{whole.data.upstream.map((u, i) => (
				<div key={i}>
					<Part name={texts.request.requestToTheEngine(u.path)} message={u.request} />
					<Part name={texts.request.answerOfTheEngine(u.status ? `, ${u.status}` : "")} message={u.response} />
				</div>
			))}
			<Part name={texts.request.responseToTheClient} message={whole.data.response} />
		</>
	);
}

function Part({ name, message }: { name: string; message: Message }) {
	const headers = Object.entries(message.headers ?? {}).map(([key, values]) => `${key}: ${values.join(", ")}`);
	const shown = new TextEncoder().encode(message.body).length;
	return (
		<details class="body-part">
			<summary>
				{name} <span class="muted">{texts.request.bytesBodyBytes(formatNumber(message.body_bytes))}</span>
			</summary>
			{headers.length > 0 && <Plain text={headers.join("\n")} class="call-text" label={texts.request.headerName(name)} />}
			<div class="body-text">
				<Plain text={pretty(message.body)} class="call-text" label={name} />
				<Copy text={message.body} label={texts.request.copyName(name)} />
			</div>
			{shown < message.body_bytes && <p class="muted">{texts.request.onlyBeginningKept}</p>}
		</details>
	);
}

function pretty(body: string): string {
	if (body.length > 1 << 20 || !/^\s*[{[]/.test(body)) return body;
	try {
		return JSON.stringify(JSON.parse(body), null, 2);
	} catch {
		return body;
	}
}
