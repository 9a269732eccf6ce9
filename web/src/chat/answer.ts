// An answer of native chat, as its events tell it: docs/api/native.md. Pure functions; nothing here knows of the page.

import type { ServerEvent } from "../core/sse";
import { texts } from "../texts";

export interface Failure {
	type?: string;
	code?: string;
	message: string;
	param?: string;
	status?: number;
	retryAfter?: number; // seconds
}

export interface Stats {
	input_tokens: number;
	total_output_tokens: number;
	reasoning_output_tokens: number;
	tokens_per_second: number;
	time_to_first_token_seconds: number;
	model_load_time_seconds?: number;
	context_length?: number;
}

export interface TextPart {
	kind: "message" | "reasoning";
	text: string;
	done: boolean;
}

export interface CallPart {
	kind: "call";
	tool: string;
	server: string; // mcp/label, or the label of an ephemeral server
	arguments?: unknown;
	status: "writing" | "waiting" | "running" | "done" | "failed";
	id?: string; // of one that waits for its approval
	output?: string;
	reason?: string; // why it failed
	done: boolean;
}

export type Part = TextPart | CallPart;

export type Phase = "waiting" | "loading" | "prompt" | "answering" | "done" | "stopped" | "failed";

export interface Answer {
	phase: Phase;
	progress: number; // of the load or the prompt, 0 to 1
	instance: string;
	parts: Part[];
	failures: Failure[]; // of MCP servers, after which the answer goes on, or the one that ended it
	responseId: string; // from which the chat can go on; empty: from none
	stats: Stats | null;
	loadSeconds: number | null;
	cachedTokens: number | null;
	queueSeconds: number | null;
	requestId: string;
	status: string; // of a stored answer, or one that a limit has cut: completed, incomplete, failed…
}

export function newAnswer(requestId = ""): Answer {
	return {
		phase: "waiting",
		progress: 0,
		instance: "",
		parts: [],
		failures: [],
		responseId: "",
		stats: null,
		loadSeconds: null,
		cachedTokens: null,
		queueSeconds: null,
		requestId,
		status: "",
	};
}

export function isRunning(a: Answer): boolean {
	return a.phase === "waiting" || a.phase === "loading" || a.phase === "prompt" || a.phase === "answering";
}

/** Returns the answer after an event. Unknown events change nothing. */
export function step(a: Answer, event: ServerEvent): Answer {
	if (!isRunning(a)) return a; // nothing follows chat.end
	const data = parse(event.data);
	if (!data) return event.event === "error" ? failed(a, { message: texts.answer.serverSentErrorRead }) : a;
	switch (event.event) {
		case "chat.start":
			return { ...a, instance: text(data.model_instance_id), responseId: text(data.response_id) };
		case "model_load.start":
			return { ...a, phase: "loading", progress: 0, instance: text(data.model_instance_id) || a.instance };
		case "model_load.progress":
		case "prompt_processing.progress":
			return { ...a, progress: Math.min(1, Math.max(0, number(data.progress))) };
		case "model_load.end":
			return { ...a, phase: "prompt", progress: 0, loadSeconds: number(data.load_time_seconds) };
		case "prompt_processing.start":
			return { ...a, phase: "prompt", progress: 0 };
		case "prompt_processing.end":
			return { ...a, phase: "answering", progress: 1 };
		case "reasoning.start":
			return { ...a, phase: "answering", parts: [...a.parts, { kind: "reasoning", text: "", done: false }] };
		case "message.start":
			return { ...a, phase: "answering", parts: [...a.parts, { kind: "message", text: "", done: false }] };
		case "reasoning.delta":
			return { ...a, phase: "answering", parts: grown(a.parts, "reasoning", text(data.content)) };
		case "message.delta":
			return { ...a, phase: "answering", parts: grown(a.parts, "message", text(data.content)) };
		case "reasoning.end":
		case "message.end":
			return { ...a, parts: closed(a.parts) };
		case "tool_call.start":
		case "tool_call.arguments":
		case "tool_call.approval":
		case "tool_call.success":
		case "tool_call.failure":
			return { ...a, phase: "answering", parts: called(a.parts, event.event, data) };
		case "error":
			return { ...a, failures: [...a.failures, failureOf(data.error)] };
		case "chat.end":
			return ended(a, object(data.result) ?? {});
		default:
			return a;
	}
}

/** Returns the answer after its stream ended without chat.end. */
export function cut(a: Answer, isStopped: boolean, message = texts.answer.connectionLostBeforeAnswer): Answer {
	if (!isRunning(a)) return a;
	if (isStopped) return { ...a, phase: "stopped", parts: settled(a.parts, "stopped") };
	return failed(a, { message });
}

/** Returns the answer after a failure. What was generated stays. */
export function failed(a: Answer, failure: Failure): Answer {
	return { ...a, phase: "failed", parts: settled(a.parts, failure.message), failures: [...a.failures, failure] };
}

function ended(a: Answer, result: Record<string, unknown>): Answer {
	const items = Array.isArray(result.output) ? result.output : null;
	const fatal = a.failures.find((f) => !isOfServer(f) || items?.length === 0);
	return {
		...a,
		phase: fatal ? "failed" : "done",
		// The result is the whole answer: it counts if they differ.
		parts: items ? partsOf(items) : settled(a.parts, ""),
		instance: text(result.model_instance_id) || a.instance,
		responseId: text(result.response_id),
		stats: (object(result.stats) as Stats | undefined) ?? null,
		status: text(result.status) || a.status,
	};
}

/** Returns the text with which an answer that was cut goes on; empty: it is whole, or can't go on. What tools have said can't be said again. */
export function cutText(a: Answer): string {
	const last = a.parts.at(-1);
	const isCut = a.phase === "stopped" || a.status === "incomplete";
	return isCut && last?.kind === "message" && a.parts.every((p) => p.kind === "reasoning" || p === last) ? last.text : "";
}

/** Returns parts as the output of a response: partsOf the other way round. */
export function outputOf(parts: Part[]): unknown[] {
	return parts.map((p) => {
		if (p.kind !== "call") return { type: p.kind, content: p.text };
		const provider = p.server.startsWith("mcp/") ? { type: "plugin", plugin_id: p.server } : { type: "ephemeral_mcp", server_label: p.server };
		const from = p.server ? { provider_info: provider } : {};
		if (p.output !== undefined) return { type: "tool_call", tool: p.tool, arguments: p.arguments, output: p.output, ...(p.status === "failed" && { is_error: true }), ...from };
		return { type: "invalid_tool_call", reason: p.reason ?? "", metadata: { type: "invalid_arguments", tool_name: p.tool, arguments: p.arguments, ...from } };
	});
}

/** Reports whether an error is one after which the answer goes on. */
function isOfServer(f: Failure): boolean {
	return f.type === "mcp_connection_error" || f.type === "plugin_connection_error";
}

/** Returns the parts of an answer's output, as chat.end and stored responses have it. */
export function partsOf(output: unknown[]): Part[] {
	const parts: Part[] = [];
	for (const item of output) {
		const o = object(item);
		if (!o) continue;
		if (o.type === "message" || o.type === "reasoning") {
			parts.push({ kind: o.type, text: text(o.content), done: true });
		} else if (o.type === "tool_call") {
			parts.push({
				kind: "call",
				tool: text(o.tool),
				server: serverOf(o.provider_info),
				arguments: o.arguments,
				status: o.is_error === true ? "failed" : "done",
				output: text(o.output),
				done: true,
			});
		} else if (o.type === "invalid_tool_call") {
			parts.push(invalidCall(o));
		}
	}
	return parts;
}

function grown(parts: Part[], kind: "message" | "reasoning", more: string): Part[] {
	const last = parts[parts.length - 1];
	if (!last || last.kind !== kind || last.done) return [...parts, { kind, text: more, done: false }];
	return [...parts.slice(0, -1), { ...last, text: last.text + more }];
}

function closed(parts: Part[]): Part[] {
	const last = parts[parts.length - 1];
	if (!last || last.kind === "call") return parts;
	return [...parts.slice(0, -1), { ...last, done: true }];
}

/** Ends what is still open: calls without a result have failed. */
function settled(parts: Part[], reason: string): Part[] {
	return parts.map((p) => {
		if (p.done) return p;
		return p.kind === "call" ? { ...p, done: true, status: "failed", reason } : { ...p, done: true };
	});
}

function called(parts: Part[], event: string, data: Record<string, unknown>): Part[] {
	const tool = text(data.tool);
	const server = serverOf(data.provider_info);
	if (event === "tool_call.start") return [...parts, { kind: "call", tool, server, status: "writing", done: false }];
	if (event === "tool_call.failure") {
		const call = invalidCall(data);
		const at = parts.findIndex((p) => p.kind === "call" && !p.done && p.tool === call.tool);
		return at < 0 ? [...parts, call] : parts.with(at, call);
	}
	const args = JSON.stringify(data.arguments);
	const isArguments = event === "tool_call.arguments";
	const isApproval = event === "tool_call.approval";
	// Calls of a round run at the same time and have no ids: the first that fits is meant.
	const at = parts.findIndex(
		(p) =>
			p.kind === "call" &&
			p.tool === tool &&
			p.server === server &&
			(isArguments ? p.status === "writing" : (p.status === "running" || (p.status === "waiting" && !isApproval)) && JSON.stringify(p.arguments) === args),
	);
	if (isApproval) return at < 0 ? parts : parts.with(at, { ...(parts[at] as CallPart), status: "waiting", id: text(data.call_id) });
	const call: CallPart = isArguments
		? { kind: "call", tool, server, arguments: data.arguments, status: "running", done: false }
		: { kind: "call", tool, server, arguments: data.arguments, status: data.is_error === true ? "failed" : "done", output: text(data.output), done: true };
	return at < 0 ? [...parts, call] : parts.with(at, call);
}

function invalidCall(o: Record<string, unknown>): CallPart {
	const metadata = object(o.metadata) ?? {};
	return {
		kind: "call",
		tool: text(metadata.tool_name),
		server: serverOf(metadata.provider_info),
		arguments: metadata.arguments,
		status: "failed",
		reason: text(o.reason),
		done: true,
	};
}

function serverOf(provider: unknown): string {
	const p = object(provider);
	return p ? text(p.plugin_id) || text(p.server_label) : "";
}

export function failureOf(error: unknown): Failure {
	const e = object(error) ?? {};
	const failure: Failure = { message: text(e.message) || texts.answer.serverReportedErrorWithout };
	for (const name of ["type", "code", "param"] as const) if (text(e[name])) failure[name] = text(e[name]);
	return failure;
}

function parse(data: string): Record<string, unknown> | undefined {
	try {
		return object(JSON.parse(data));
	} catch {
		return undefined;
	}
}

function object(v: unknown): Record<string, unknown> | undefined {
	return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Record<string, unknown>) : undefined;
}

function text(v: unknown): string {
	return typeof v === "string" ? v : "";
}

function number(v: unknown): number {
	return typeof v === "number" && Number.isFinite(v) ? v : 0;
}
