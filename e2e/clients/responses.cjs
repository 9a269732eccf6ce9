'use strict';
// Runs the part of OpenAI's own library that is about responses: node responses.cjs BASE_URL MCP_URL. MCP_URL is that of
// server-everything. Says what it has seen, a line for each check, and ends with a status that isn't 0 when a check fails. The
// library is found by NODE_PATH.

const assert = require('node:assert/strict');
const OpenAI = require('openai');

const [base, mcp] = process.argv.slice(2);
const model = 'lmcaddy/tinychat';
const client = new OpenAI({ baseURL: base + '/v1', apiKey: 'none is needed', maxRetries: 0, timeout: 60_000 });
const settings = { model, temperature: 0 };
const quick = { ...settings, reasoning: { effort: 'none' } };

const question = 'What is the capital of France?';
const answer = 'The capital of France is Paris.';

const echo = {
  type: 'function',
  name: 'echo',
  description: 'Says what it is told',
  parameters: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'], additionalProperties: false },
  strict: true,
};
const useEcho = 'Use echo with message hello world';

const schema = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } },
  required: ['city'],
  additionalProperties: false,
};
const format = { type: 'json_schema', name: 'city', strict: true, schema };

// gives a function's result to the model, in each of the ways that there are.
async function giveResult(response) {
  const call = response.output.at(-1);
  assert.equal(call.type, 'function_call');
  assert.deepEqual(JSON.parse(call.arguments), { message: 'hello world' });
  const result = { type: 'function_call_output', call_id: call.call_id, output: 'red river' };
  const resent = [{ role: 'user', content: useEcho }, ...response.output, result];
  for (const more of [{ previous_response_id: response.id, input: [result] }, { input: resent }, { input: resent, store: false }]) {
    const got = await client.responses.create({ ...settings, tools: [echo], ...more });
    assert.equal(got.output_text, 'The tool returned: red river');
  }
}

// ended polls a background response.
async function ended(id) {
  for (;;) {
    const got = await client.responses.retrieve(id);
    if (!['queued', 'in_progress'].includes(got.status)) return got;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const checks = {
  async create() {
    const got = await client.responses.create({ ...settings, input: question });
    assert.equal(got.output_text, answer);
    assert.equal(got.status, 'completed');
    assert.deepEqual(got.output.map((item) => item.type), ['reasoning', 'message']);
    assert.equal(got.usage.total_tokens, got.usage.input_tokens + got.usage.output_tokens);
    assert.ok(got.usage.output_tokens_details.reasoning_tokens > 0);
  },

  async streaming() {
    const stream = await client.responses.create({ ...settings, input: question, stream: true });
    let text = '', number = 0, last;
    for await (const event of stream) {
      assert.equal(event.sequence_number, number++);
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event;
    }
    assert.equal(text, answer);
    assert.equal(last.type, 'response.completed');
    assert.equal(last.response.output.at(-1).content[0].text, answer);
  },

  async 'the helper that puts a stream together'() {
    const stream = client.responses.stream({ ...settings, input: question });
    let snapshot = '', thoughts = '';
    stream.on('response.output_text.delta', (event) => { snapshot = event.snapshot; });
    stream.on('response.reasoning_text.delta', (event) => { thoughts += event.delta; });
    const got = await stream.finalResponse();
    assert.equal(got.output_text, answer);
    assert.equal(snapshot, answer);
    assert.equal(thoughts, got.output[0].content[0].text);
  },

  async 'a function and its result'() {
    await giveResult(await client.responses.create({ ...settings, input: useEcho, tools: [echo] }));
  },

  async 'a function and its result, streamed'() {
    const stream = client.responses.stream({ ...settings, input: useEcho, tools: [echo] });
    let snapshot;
    stream.on('response.function_call_arguments.delta', (event) => { snapshot = event.snapshot; });
    const response = await stream.finalResponse();
    assert.deepEqual(JSON.parse(snapshot), { message: 'hello world' });
    assert.deepEqual(response.output.at(-1).parsed_arguments, { message: 'hello world' });
    await giveResult(await client.responses.retrieve(response.id));
  },

  async 'a call that is demanded'() {
    for (const tool_choice of ['required', { type: 'function', name: 'echo' }]) {
      const got = await client.responses.create({ ...settings, input: question, tools: [echo], tool_choice });
      assert.equal(got.output.at(-1).type, 'function_call');
    }
  },

  async 'structured output'() {
    const got = await client.responses.parse({ ...settings, input: question, max_output_tokens: 400, text: { format } });
    assert.ok(schema.properties.city.enum.includes(JSON.parse(got.output_text).city));
    assert.ok(schema.properties.city.enum.includes(got.output_parsed.city));
  },

  async 'structured output, streamed'() {
    const got = await client.responses.stream({ ...settings, input: question, max_output_tokens: 400, text: { format } }).finalResponse();
    assert.ok(schema.properties.city.enum.includes(JSON.parse(got.output_text).city));
  },

  async 'a limit'() {
    const stream = client.responses.stream({ ...quick, input: question, max_output_tokens: 2 });
    const got = await stream.finalResponse();
    assert.equal(got.status, 'incomplete');
    assert.deepEqual(got.incomplete_details, { reason: 'max_output_tokens' });
  },

  async 'log probabilities'() {
    const got = await client.responses.create({ ...quick, input: question, include: ['message.output_text.logprobs'], top_logprobs: 2 });
    assert.equal(got.output[0].content[0].logprobs.map((token) => token.token).join(''), answer);
  },

  async 'a conversation'() {
    const first = await client.responses.create({ ...quick, input: 'My name is Ada.' });
    const got = await client.responses.create({ ...quick, input: 'What is my name?', previous_response_id: first.id });
    assert.equal(got.output_text, 'Your name is Ada.');
    assert.equal((await client.responses.retrieve(got.id)).output_text, got.output_text);
    const items = [];
    for await (const item of client.responses.inputItems.list(got.id, { order: 'asc' })) items.push(item);
    assert.equal(items.at(-1).content[0].text, 'What is my name?');
    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id), (e) => e instanceof OpenAI.NotFoundError);
    const lost = client.responses.create({ ...quick, input: 'Hello', previous_response_id: first.id });
    await assert.rejects(lost, (e) => e instanceof OpenAI.BadRequestError && e.code === 'previous_response_not_found');
  },

  async 'in the background'() {
    const begun = await client.responses.create({ ...settings, input: question, background: true });
    assert.ok(['queued', 'in_progress'].includes(begun.status));
    const got = await ended(begun.id);
    assert.equal(got.output_text, answer);
    // The helper reads the whole stream again, and gives only the later events.
    const numbers = [];
    const stream = client.responses.stream({ response_id: begun.id, starting_after: 3 });
    stream.on('event', (event) => numbers.push(event.sequence_number));
    assert.equal((await stream.finalResponse()).output_text, answer);
    assert.equal(numbers[0], 4);
  },

  async 'in the background, streamed and lost'() {
    const stream = await client.responses.create({ ...settings, input: question, background: true, stream: true });
    let id, number;
    for await (const event of stream) {
      id ??= event.response?.id;
      number = event.sequence_number;
      if (event.type === 'response.output_item.added') break; // which disconnects
    }
    let text = '';
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: number })) {
      assert.equal(event.sequence_number, ++number);
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    assert.equal(text, answer);
  },

  async 'in the background, cancelled'() {
    const begun = await client.responses.create({ ...quick, input: 'Count to 30', background: true, max_output_tokens: 30_000, logit_bias: [[758, false]] });
    assert.equal((await client.responses.cancel(begun.id)).status, 'cancelled');
    assert.equal((await ended(begun.id)).status, 'cancelled');
  },

  async 'remote MCP'() {
    const tools = [{ type: 'mcp', server_label: 'everything', server_url: mcp, allowed_tools: ['echo'], require_approval: 'never' }];
    const seen = new Set();
    const stream = client.responses.stream({ ...quick, input: useEcho, tools });
    stream.on('event', (event) => seen.add(event.type));
    for (const got of [await client.responses.create({ ...quick, input: useEcho, tools }), await stream.finalResponse()]) {
      assert.deepEqual(got.output.map((item) => item.type), ['mcp_list_tools', 'mcp_call', 'message']);
      assert.equal(got.output[1].output, 'Echo: hello world');
      assert.equal(got.output_text, 'The tool returned: Echo: hello world');
    }
    for (const type of ['mcp_list_tools.completed', 'mcp_call_arguments.done', 'mcp_call.completed']) assert.ok(seen.has('response.' + type), type);
  },

  async 'compaction and counting'() {
    const input = [{ role: 'user', content: 'My name is Ada.' }, { role: 'assistant', content: 'Hello, Ada!' }];
    const compacted = await client.responses.compact({ model, input });
    assert.equal(compacted.object, 'response.compaction');
    const got = await client.responses.create({ ...quick, input: [...compacted.output, { role: 'user', content: question }] });
    assert.ok(got.output_text.length > 0);
    const count = await client.responses.inputTokens.count({ ...quick, input: question });
    assert.equal(count.input_tokens, (await client.responses.create({ ...quick, input: question })).usage.input_tokens);
  },

  async errors() {
    const unknown = client.responses.create({ ...settings, model: 'nope', input: question });
    await assert.rejects(unknown, (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found' && e.param === 'model');
    const tools = [{ type: 'mcp', server_label: 'gone', server_url: 'http://127.0.0.1:9/mcp', require_approval: 'never' }];
    const gone = client.responses.create({ ...quick, input: useEcho, tools });
    await assert.rejects(gone, (e) => e.status === 424 && e.type === 'external_connector_error' && e.param === 'tools');
    const streamed = client.responses.stream({ ...quick, input: useEcho, tools }).finalResponse();
    await assert.rejects(streamed, (e) => e instanceof OpenAI.APIError && /gone/.test(e.message));
  },
};

(async () => {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok: ${name}`);
    } catch (e) {
      failed++;
      console.log(`failed: ${name}: ${e.stack}`);
    }
  }
  console.log(`${Object.keys(checks).length} checks, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
})();
