import assert from "node:assert/strict";
import { test } from "node:test";
import { newAnswer } from "../src/chat/answer.ts";
import { branches, choose, continues, emptyTree, inputOf, path, treeOf, withAnswer, without, withTurn } from "../src/chat/tree.ts";

const turn = (id, parent = "", responseId = "resp_" + id) => ({
	id,
	parent,
	question: { text: "question " + id, images: [] },
	answer: { ...newAnswer(), phase: "done", responseId },
	model: "m",
});
const ids = (turns) => turns.map((t) => t.id).join(" ");

test("branches are siblings, and one of them is shown", () => {
	let tree = [turn("a"), turn("b", "a"), turn("c", "b"), turn("b2", "a")].reduce(withTurn, emptyTree);
	assert.equal(ids(path(tree)), "a b2");
	assert.equal(ids(branches(tree).get("a")), "b b2");
	tree = choose(tree, tree.turns.get("b"));
	assert.equal(ids(path(tree)), "a b c");
	tree = withTurn(tree, turn("a2"));
	assert.equal(ids(path(tree)), "a2");
	assert.equal(ids(branches(tree).get("")), "a a2");
});

test("a question continues the nearest response that is stored", () => {
	let tree = [turn("a"), turn("b", "a", ""), turn("c", "b")].reduce(withTurn, emptyTree);
	assert.equal(continues(tree, "c"), "resp_c");
	assert.equal(continues(tree, "b"), "resp_a");
	assert.equal(continues(tree, ""), "");
	tree = withAnswer(tree, "c", (a) => ({ ...a, phase: "answering" }));
	assert.equal(continues(tree, "c"), "resp_a", "one that is being made can't be continued");
	assert.equal(
		withAnswer(tree, "c", (a) => a),
		tree,
	);
	assert.equal(withAnswer(tree, "none", newAnswer), tree);
});

test("only the end of a branch can be deleted", () => {
	const tree = [turn("a"), turn("b", "a"), turn("b2", "a")].reduce(withTurn, emptyTree);
	assert.equal(without(tree, "a"), tree);
	assert.equal(ids(path(without(tree, "b2"))), "a b");
	assert.equal(ids(path(without(without(tree, "b2"), "b"))), "a");
});

test("a stored conversation is shown with its newest branch", () => {
	const stored = (id, previous, text, more = {}) => ({
		response_id: id,
		previous_response_id: previous,
		model: "m",
		status: "completed",
		input: [{ type: "message", content: text }],
		output: [{ type: "message", content: "answer" }],
		usage: { input_tokens: 5, cached_input_tokens: 2, output_tokens: 7 },
		...more,
	});
	const tree = treeOf([
		stored("r1", undefined, "one", { system_prompt: "Be brief." }),
		stored("r2", "r1", "two"),
		stored("r3", "r2", "three"),
		stored("r4", "r1", "two again", {
			status: "incomplete",
			input: [
				{ type: "message", content: "look" },
				{ type: "image", data_url: "data:x" },
			],
		}),
		stored("r5", "gone", "lost"),
	]);
	assert.equal(ids(path(choose(tree, tree.turns.get("r1")))), "r1 r4");
	assert.equal(ids(path(choose(choose(tree, tree.turns.get("r1")), tree.turns.get("r2")))), "r1 r2 r3");
	assert.equal(ids(branches(tree).get("")), "r1 r5");
	const r4 = tree.turns.get("r4");
	assert.deepEqual(r4.question, { text: "look", images: ["data:x"] });
	assert.equal(r4.answer.phase, "stopped");
	assert.equal(r4.answer.cachedTokens, 2);
	assert.equal(tree.turns.get("r1").systemPrompt, "Be brief.");
});

test("what a question has besides its text is found again in its input", () => {
	const question = { text: "What is it?", images: ["data:image/png;base64,AA=="], recordings: [{ name: "", url: "data:audio/wav;base64,AA==" }] };
	const input = inputOf(question);
	assert.deepEqual(input.map((i) => i.type), ["message", "image", "audio"]);
	const tree = treeOf([{ response_id: "a", model: "m", status: "completed", input, output: [] }]);
	assert.deepEqual(tree.turns.get("a").question, question);
	assert.deepEqual(inputOf({ ...question, text: "" }).map((i) => i.type), ["image", "audio"]);
	assert.deepEqual(inputOf({ text: "", images: [] }).map((i) => i.type), ["message"]);
});
