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

type Whole = components["schemas"]["WholeRequest"];
type Message = components["schemas"]["HTTPMessage"];

/** All that is known of a request. */
export function RequestDetails({ id, request, onClose }: { id: string; request: Request | undefined; onClose: () => void }) {
	const isAdmin = useCan("admin");
	return (
		<Dialog title="Request" wide onClose={onClose}>
			{request ? <Summary request={request} /> : <p class="muted">This request isn't among the newest ones any more.</p>}
			{isAdmin && (
				<p>
					<a class="button small" href={href("logs", "", { request: id, level: "debug" })}>
						Its lines in the log
					</a>
				</p>
			)}
			{isAdmin ? (
				<Bodies id={id} isDone={!request || !isRunning(request)} />
			) : (
				<p class="muted">Administrators can see whole requests, if the option inspect is on.</p>
			)}
		</Dialog>
	);
}

function Summary({ request: r }: { request: Request }) {
	const tokensPerSecond = speed(r);
	return (
		<Facts>
			<Fact name="Id">
				<span class="row">
					<code>{r.id}</code>
					<Copy text={r.id} label="Copy id" />
				</span>
			</Fact>
			<Fact name="Arrived">{formatTime(r.arrived_at)}</Fact>
			<Fact name="Outcome">{isRunning(r) ? "in progress" : r.outcome}</Fact>
			<Fact name="Status">{r.status || ""}</Fact>
			<Fact name="Request">
				{r.method} {r.path}
			</Fact>
			<Fact name="API">{r.dialect}</Fact>
			<Fact name="Model">{r.model}</Fact>
			<Fact name="Instance">{r.instance && <a href={href("logs", "", { instance: r.instance, level: "debug" })}>{r.instance}</a>}</Fact>
			<Fact name="Token">{r.token_name || r.owner}</Fact>
			<Fact name="Streamed">{r.stream ? "yes" : "no"}</Fact>
			<Fact name="Took">{r.duration_seconds !== undefined && formatDuration(r.duration_seconds)}</Fact>
			<Fact name="Queued for">{r.queue_seconds !== undefined && formatDuration(r.queue_seconds)}</Fact>
			<Fact name="Loaded the model in">{r.load_seconds && formatDuration(r.load_seconds)}</Fact>
			<Fact name="Restored a saved state in">{r.restore_seconds && formatDuration(r.restore_seconds)}</Fact>
			<Fact name="First token after">{r.time_to_first_token_seconds && formatDuration(r.time_to_first_token_seconds)}</Fact>
			<Fact name="Tokens/s">{tokensPerSecond && formatRate(tokensPerSecond)}</Fact>
			<Fact name="Tokens in">{r.input_tokens !== undefined && formatNumber(r.input_tokens)}</Fact>
			<Fact name="of these cached">{r.cached_tokens && formatNumber(r.cached_tokens)}</Fact>
			<Fact name="Tokens out">{r.output_tokens !== undefined && formatNumber(r.output_tokens)}</Fact>
			<Fact name="Tool calls">{r.tool_calls && formatNumber(r.tool_calls)}</Fact>
		</Facts>
	);
}

/** What was sent and answered, if the server keeps that. */
function Bodies({ id, isDone }: { id: string; isDone: boolean }) {
	const whole = useResource<Whole>("/api/v1/requests/" + segment(id), { query: {}, events: isDone ? [] : ["request.end"] });
	if (whole.error instanceof ApiError && whole.error.code === "inspection_off") {
		return (
			<Note>
				<span>
					To see what clients send and get, write <code>inspect 100</code> among the options of <code>lm</code> in the Caddyfile, and run{" "}
					<code>lmcaddy reload</code>. The last 100 requests are then kept whole, in memory.
				</span>
			</Note>
		);
	}
	if (whole.error instanceof ApiError && whole.error.code === "request_not_found")
		return <p class="muted">It isn't among the requests that are kept whole.</p>;
	if (whole.error) return <Failure error={whole.error} retry={whole.reload} />;
	if (!whole.data) return <Loading />;
	return (
		<>
			<Part name="Request of the client" message={whole.data.request} />
			{whole.data.upstream.map((u, i) => (
				<div key={i}>
					<Part name={`Request to the engine, ${u.path}`} message={u.request} />
					<Part name={`Answer of the engine${u.status ? `, ${u.status}` : ""}`} message={u.response} />
				</div>
			))}
			<Part name="Response to the client" message={whole.data.response} />
		</>
	);
}

function Part({ name, message }: { name: string; message: Message }) {
	const headers = Object.entries(message.headers ?? {}).map(([key, values]) => `${key}: ${values.join(", ")}`);
	const shown = new TextEncoder().encode(message.body).length;
	return (
		<details class="body-part">
			<summary>
				{name} <span class="muted">{formatNumber(message.body_bytes)} bytes</span>
			</summary>
			{headers.length > 0 && <Plain text={headers.join("\n")} class="call-text" label={`Header: ${name}`} />}
			<div class="body-text">
				<Plain text={pretty(message.body)} class="call-text" label={name} />
				<Copy text={message.body} label={`Copy: ${name}`} />
			</div>
			{shown < message.body_bytes && <p class="muted">Only the beginning is kept.</p>}
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
