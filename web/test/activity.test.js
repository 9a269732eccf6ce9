import { splitFiles, withFiles } from "../src/chat/files.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFailed, isRunning, keyOf, newest, speed } from "../src/activity/requestlist.ts";
import { mostSeries, plotted, sums } from "../src/activity/usagedata.ts";
import { asJSON, asMarkdown, fenced } from "../src/chat/export.ts";
import { fieldsOf, numberError } from "../src/chat/options.ts";
import { newAnswer } from "../src/chat/answer.ts";
import { titleIn } from "../src/chat/titles.ts";
import { conversationsIn } from "../src/chat/transfer.ts";
import { emptyTree, treeOf, withTurn } from "../src/chat/tree.ts";

const row = (time, name, tokens) => ({ time, name, requests: 1, input_tokens: tokens, output_tokens: 1 });
const seconds = (time) => Date.parse(time) / 1000;

test("usage is plotted without gaps, the largest first", () => {
	const rows = [
		row("2026-01-31T10:00:00Z", "a", 5),
		row("2026-01-31T12:00:00Z", "b", 50),
		row("2026-01-31T12:00:00Z", "a", 7),
		row("2026-01-30T00:00:00Z", "a", 1000),
	];
	const data = plotted(rows, "input_tokens", seconds("2026-01-31T10:30:00Z"), seconds("2026-01-31T12:30:00Z"), true);
	assert.deepEqual(
		data.times,
		["10", "11", "12"].map((h) => seconds(`2026-01-31T${h}:00:00Z`)),
	);
	assert.deepEqual(data.series, [
		{ name: "b", values: [0, 0, 50], total: 50 },
		{ name: "a", values: [5, 0, 7], total: 12 },
	]);
});

test("many names are plotted as a few", () => {
	const rows = Array.from({ length: 20 }, (_, i) => row("2026-01-31T00:00:00Z", "m" + i, i));
	const { series } = plotted(rows, "tokens", seconds("2026-01-31T00:00:00Z"), seconds("2026-01-31T01:00:00Z"), false);
	assert.equal(series.length, mostSeries + 1);
	assert.equal(series[0].name, "m19");
	assert.equal(series.at(-1).name, "15 others");
	assert.equal(
		series.reduce((n, s) => n + s.total, 0),
		190 + 20,
	);
	assert.equal(sums(rows, (r) => r.name)[0].name, "m19");
	assert.equal(sums(rows, () => "all")[0].requests, 20);
});

test("requests are told apart by their arrival, too, and the newest are kept", () => {
	const requests = Array.from({ length: 600 }, (_, i) => ({ id: "same", arrived_at: new Date(1e12 + i).toISOString() }));
	const kept = newest(new Map(requests.map((r) => [keyOf(r), r])));
	assert.equal(kept.size, 500);
	assert.equal([...kept.values()][0], requests[599]);
});

test("a request runs until it has a duration", () => {
	assert.ok(isRunning({ outcome: undefined }));
	assert.ok(!hasFailed({}));
	assert.ok(!hasFailed({ duration_seconds: 1, outcome: "cancelled" }));
	assert.ok(hasFailed({ duration_seconds: 0, outcome: "engine_failed" }));
	assert.equal(speed({ time_per_output_token_seconds: 0.1 }), 10);
	assert.equal(speed({}), null);
});

test("numbers are checked as the server checks them", () => {
	assert.equal(numberError("temperature", ""), "");
	assert.equal(numberError("temperature", "0.5"), "");
	assert.match(numberError("temperature", "1.5"), /1 or less/);
	assert.match(numberError("max_output_tokens", "1.5"), /whole/);
	assert.match(numberError("repeat_penalty", "0"), /above 0/);
	assert.match(numberError("seed", "x"), /number/);
});

test("a request has what was chosen, and nothing else", () => {
	const none = { systemPrompt: "", preset: "", reasoning: "", numbers: {}, draftModel: "", bias: "", stop: "", isStored: true, servers: {}, isAsked: true };
	assert.deepEqual(fieldsOf(none), { background: true });
	assert.deepEqual(
		fieldsOf({
			...none,
			isStored: false,
			numbers: { temperature: " 0 ", top_p: "7" },
			stop: "a\n\nb\n",
			preset: "p",
			servers: { x: null, y: ["t"] },
			draftModel: " d ",
			bias: '{"1": 2}',
		}),
		{
			store: false,
			temperature: 0,
			preset: "p",
			draft_model: "d",
			logit_bias: { 1: 2 },
			stop: ["a", "b"],
			integrations: [
				{ type: "plugin", id: "mcp/x" },
				{ type: "plugin", id: "mcp/y", allowed_tools: ["t"] },
			],
		},
	);
});

test("a conversation is exported", () => {
	const answer = {
		...newAnswer(),
		phase: "done",
		responseId: "resp_1",
		parts: [
			{ kind: "reasoning", text: "Hm\nso", done: true },
			{ kind: "call", tool: "add", server: "mcp/x", arguments: { a: 1 }, output: "```", status: "done", done: true },
			{ kind: "message", text: "Hello", done: true },
		],
	};
	const tree = withTurn(emptyTree, { id: "t", parent: "", question: { text: "Hi", images: [] }, answer, model: "m", systemPrompt: "Be brief." });
	assert.equal(
		asMarkdown(tree),
		'## System prompt\n\nBe brief.\n\n## Question\n\nHi\n\n## Answer (m)\n\n> Hm\n> so\n\n````json\nadd({"a":1})\n```\n````\n\nHello\n',
	);
	const json = JSON.parse(asJSON(tree, "resp_1"));
	const [exported] = json.conversations[0].responses;
	assert.equal(exported.response_id, "resp_1");
	assert.equal(exported.output.length, 3);
	assert.deepEqual(treeOf([exported]).turns.get("resp_1").answer.parts, answer.parts);
	assert.equal(fenced("", "````"), "`````\n````\n`````");
});

test("a question's files are found again in its text", () => {
	const files = [
		{ name: "a.txt", text: "one\n\ntwo" },
		{ name: "b.md", text: '<file name="c">\n</file>' },
	];
	assert.deepEqual(splitFiles(withFiles("What?", files)), { text: "What?", files });
	assert.deepEqual(splitFiles(withFiles("", files.slice(0, 1))), { text: "", files: files.slice(0, 1) });
	for (const text of ["", "none", 'a <file name="x">\ny\n</file>', '<file name="x">\nno end', '<file name="x">\ny\n</file>\nmore']) assert.deepEqual(splitFiles(text), { text, files: [] });
});

test("what was exported is imported, also where a response was deleted", () => {
	const responses = [{ response_id: "a", previous_response_id: "gone", input: [] }, { response_id: "b", previous_response_id: "a" }, { response_id: "c", previous_response_id: "lost" }];
	const [one] = conversationsIn(JSON.stringify({ conversations: [{ title: "T", pinned: true, responses }, { responses: [] }] }));
	assert.deepEqual(one.responses.map((r) => r.previous_response_id), [undefined, "a", "a"]);
	assert.equal(one.title, "T");
	assert.equal(conversationsIn(JSON.stringify({ responses })).length, 1);
	for (const text of ["no", "null", "{}", '{"conversations":[]}']) assert.throws(() => conversationsIn(text), /Choose one/);
});

test("a title is what a model says without its decoration", () => {
	for (const [said, title] of [['**Title: "The Sky"**\nmore', "The Sky"], ["\n\nParis in spring.", "Paris in spring"], ["# C# basics", "C# basics"], ["…", ""]]) assert.equal(titleIn(said), title);
});
