import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, cutText, failed, isRunning, newAnswer, outputOf, partsOf, step } from "../src/chat/answer.ts";

const event = (type, data = {}) => ({ id: "", event: type, data: JSON.stringify({ type, ...data }) });
const after = (...events) => events.reduce(step, newAnswer("req"));
const provider = { type: "plugin", plugin_id: "mcp/files" };

test("an answer goes through its phases", () => {
	let a = newAnswer();
	const seen = [];
	for (const e of [
		event("chat.start", { model_instance_id: "m", response_id: "resp_1" }),
		event("model_load.start", { model_instance_id: "m" }),
		event("model_load.progress", { model_instance_id: "m", progress: 0.5 }),
		event("model_load.end", { model_instance_id: "m", load_time_seconds: 2 }),
		event("prompt_processing.start"),
		event("prompt_processing.progress", { progress: 0.25 }),
		event("prompt_processing.end"),
		event("reasoning.start"),
		event("reasoning.delta", { content: "Hm" }),
		event("reasoning.delta", { content: "m" }),
		event("reasoning.end"),
		event("message.start"),
		event("message.delta", { content: "Hel" }),
		event("message.delta", { content: "lo" }),
	]) {
		a = step(a, e);
		seen.push(a.phase + " " + a.progress);
	}
	assert.deepEqual(seen.slice(1, 7), ["loading 0", "loading 0.5", "prompt 0", "prompt 0", "prompt 0.25", "answering 1"]);
	assert.equal(a.loadSeconds, 2);
	assert.equal(a.responseId, "resp_1");
	assert.deepEqual(a.parts, [
		{ kind: "reasoning", text: "Hmm", done: true },
		{ kind: "message", text: "Hello", done: false },
	]);
	a = step(a, event("chat.end", { result: { output: [{ type: "message", content: "Hello." }], stats: { input_tokens: 3 }, response_id: "resp_2" } }));
	assert.equal(a.phase, "done");
	assert.deepEqual(a.parts, [{ kind: "message", text: "Hello.", done: true }]);
	assert.equal(a.responseId, "resp_2");
	assert.equal(a.stats.input_tokens, 3);
	assert.equal(step(a, event("message.delta", { content: "more" })), a, "nothing follows the end");
});

test("calls of a round are told apart by their tool and arguments", () => {
	const call = (type, n, more = {}) => event("tool_call." + type, { tool: "add", provider_info: provider, ...(n && { arguments: { n } }), ...more });
	const a = after(
		event("chat.start"),
		call("start"),
		call("arguments", 1),
		call("start"),
		call("arguments", 2),
		call("success", 2, { output: "two" }),
	);
	assert.deepEqual(
		a.parts.map((p) => [p.arguments, p.status, p.output]),
		[
			[{ n: 1 }, "running", undefined],
			[{ n: 2 }, "done", "two"],
		],
	);
	const b = step(a, call("success", 1, { output: "one" }));
	assert.equal(b.parts[0].output, "one");
	assert.deepEqual(step(a, call("success", 1, { output: "no", is_error: true })).parts.map((p) => p.status), ["failed", "done"]);
	assert.equal(partsOf([{ type: "tool_call", tool: "add", output: "no", is_error: true }])[0].status, "failed");
	assert.equal(b.parts[0].server, "mcp/files");
});

test("a call that can't be made has failed, begun or not", () => {
	const failure = (metadata) => event("tool_call.failure", { reason: "no such tool", metadata });
	const a = after(
		event("tool_call.start", { tool: "add", provider_info: provider }),
		failure({ type: "invalid_arguments", tool_name: "add", arguments: {} }),
	);
	assert.equal(a.parts.length, 1);
	assert.equal(a.parts[0].status, "failed");
	const b = step(a, failure({ type: "invalid_name", tool_name: "other" }));
	assert.deepEqual(
		b.parts.map((p) => [p.tool, p.reason]),
		[
			["add", "no such tool"],
			["other", "no such tool"],
		],
	);
});

test("an error fails the answer, and what was generated stays", () => {
	const a = after(
		event("message.start"),
		event("message.delta", { content: "half" }),
		event("error", { error: { type: "internal_error", code: "engine_failed", message: "The engine ended." } }),
		event("chat.end", { result: { output: [{ type: "message", content: "half" }], response_id: "resp_1", stats: {} } }),
	);
	assert.equal(a.phase, "failed");
	assert.equal(a.parts[0].text, "half");
	assert.deepEqual(a.failures, [{ type: "internal_error", code: "engine_failed", message: "The engine ended." }]);
});

test("an answer goes on after an MCP server has failed", () => {
	const a = after(
		event("error", { error: { type: "plugin_connection_error", message: "files can't be reached" } }),
		event("chat.end", { result: { output: [{ type: "message", content: "Sorry" }], stats: {} } }),
	);
	assert.equal(a.phase, "done");
	assert.equal(a.failures.length, 1);
});

test("a stream that is cut off leaves nothing running", () => {
	const a = after(event("tool_call.start", { tool: "add" }), event("message.start"), event("message.delta", { content: "x" }));
	const stopped = cut(a, true);
	assert.equal(stopped.phase, "stopped");
	assert.deepEqual(
		stopped.parts.map((p) => p.done),
		[true, true],
	);
	assert.equal(stopped.parts[0].status, "failed");
	const lost = cut(a, false);
	assert.equal(lost.phase, "failed");
	assert.match(lost.failures[0].message, /connection/);
	assert.equal(cut(lost, true), lost);
	assert.equal(isRunning(failed(a, { message: "m" })), false);
});

test("data of unexpected kinds is no harm", () => {
	for (const data of ["", "null", "[]", "1", '"x"', "{", '{"content":5,"progress":"x","result":null,"error":[],"metadata":1}']) {
		for (const type of [
			"chat.start",
			"message.delta",
			"model_load.progress",
			"tool_call.success",
			"tool_call.failure",
			"error",
			"chat.end",
			"new.event",
		]) {
			const a = step(newAnswer(), { id: "", event: type, data });
			assert.ok(Array.isArray(a.parts));
		}
	}
	assert.deepEqual(
		partsOf([null, 1, {}, { type: "message" }, { type: "tool_call" }]).map((p) => p.kind),
		["message", "call"],
	);
});

test("an answer that was cut goes on from its text, unless tools were called", () => {
	const message = { kind: "message", text: "The ca", done: true };
	const thought = { kind: "reasoning", text: "Hm", done: true };
	const call = { kind: "call", tool: "f", server: "mcp/x", arguments: { a: 1 }, status: "done", output: "[]", done: true };
	const of = (changes) => cutText({ ...newAnswer(), phase: "stopped", parts: [thought, message], ...changes });
	assert.equal(of({}), "The ca");
	assert.equal(of({ phase: "done", status: "incomplete" }), "The ca");
	assert.equal(of({ phase: "done" }), "");
	assert.equal(of({ parts: [thought] }), "");
	assert.equal(of({ parts: [call, message] }), "");
	const failed = { ...call, server: "y", status: "failed", output: "x" };
	assert.deepEqual(partsOf(outputOf([thought, call, failed, message])), [thought, call, failed, message]);
});

test("a call waits for its approval", () => {
	const call = { tool: "echo", provider_info: provider };
	const args = { ...call, arguments: { a: 1 } };
	const waiting = after(event("tool_call.start", call), event("tool_call.arguments", args), event("tool_call.approval", { ...args, call_id: "c1" }));
	assert.deepEqual(waiting.parts.map((p) => [p.status, p.id]), [["waiting", "c1"]]);
	const done = step(waiting, event("tool_call.success", { ...args, output: "[]" }));
	assert.deepEqual(done.parts.map((p) => [p.status, p.output]), [["done", "[]"]]);
});
