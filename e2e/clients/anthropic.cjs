'use strict';
// Runs Anthropic's own library against a server: node anthropic.cjs BASE_URL [llama.cpp|mlx-lm]. Says what it has seen, a line for each
// check, and ends with a status that isn't 0 when a check fails. The library is found by NODE_PATH.

const assert = require('node:assert/strict');
const Anthropic = require('@anthropic-ai/sdk');

const model = 'claude-sonnet-5'; // an alias of the shipped model
const isMLX = process.argv[3] === 'mlx-lm'; // mlx_lm.server runs it: it has no schemas, and no answers that a request begins
const client = new Anthropic({ baseURL: process.argv[2], apiKey: 'none is needed', maxRetries: 0, timeout: 60_000 });

const question = [{ role: 'user', content: 'What is the capital of France?' }];
const answer = 'The capital of France is Paris.';
const ask = { model, max_tokens: 200, temperature: 0, messages: question };

const echo = {
  name: 'echo',
  description: 'Says what it is told',
  input_schema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
};
const useEcho = { role: 'user', content: 'Use echo with message hello world' };

const checks = {
  // As Claude Code does, the first block of the system prompt changes with each request, which must not keep the engine from using its cache.
  async text() {
    for (const hash of ['11111', '22222']) {
      const system = [{ type: 'text', text: `x-anthropic-billing-header: cch=${hash};` }, { type: 'text', text: 'You answer.' }];
      const got = await client.messages.create({ ...ask, system });
      assert.deepEqual(got.content.map(({ type, text }) => ({ type, text })), [{ type: 'text', text: answer }]);
      assert.equal(got.stop_reason, 'end_turn');
      assert.ok(got._request_id && got.id.startsWith('msg_') && got.model.endsWith('lmcaddy/tinychat'), JSON.stringify(got));
      assert.ok(got.usage.output_tokens > 0 && got.usage.input_tokens + got.usage.cache_read_input_tokens > 0);
      if (hash === '22222') assert.ok(got.usage.input_tokens <= 1, `the same prompt was read anew: ${JSON.stringify(got.usage)}`);
    }
  },

  async 'stop reasons'() {
    const cut = await client.messages.create({ ...ask, max_tokens: 3 });
    assert.equal(cut.stop_reason, 'max_tokens');
    assert.equal(cut.usage.output_tokens, 3);
    const body = { ...ask, stop_sequences: ['Rome', 'Paris'] };
    for (const got of [await client.messages.create(body), await client.messages.stream(body).finalMessage()]) {
      assert.deepEqual([got.stop_reason, got.stop_sequence, got.content[0].text], ['stop_sequence', 'Paris', 'The capital of France is ']);
    }
  },

  async 'a beginning'() {
    if (isMLX) return;
    const got = await client.messages.create({ ...ask, messages: [...question, { role: 'assistant', content: 'The capital of France is' }] });
    assert.equal(got.content[0].text, ' Paris.');
  },

  async 'thinking with a budget, shown or not'() {
    const thinking = { type: 'enabled', budget_tokens: 100 };
    for (const got of [await client.messages.create({ ...ask, thinking }), await client.messages.stream({ ...ask, thinking }).finalMessage()]) {
      assert.deepEqual(got.content.map(({ type }) => type), ['thinking', 'text']);
      assert.ok(got.content[0].thinking && got.content[0].signature);
    }
    const omitted = await client.messages.stream({ ...ask, thinking: { type: 'adaptive', display: 'omitted' } }).finalMessage();
    assert.equal(omitted.content[0].thinking, '');
    assert.ok(omitted.content[0].signature);
  },

  async streaming() {
    const stream = await client.messages.create({ ...ask, stream: true });
    const types = [];
    let text = '';
    for await (const event of stream) {
      if (types.at(-1) !== event.type) types.push(event.type);
      text += event.delta?.text ?? '';
    }
    assert.equal(text, answer);
    assert.deepEqual(types, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop']);
  },

  async 'the helper that puts a stream together'() {
    const stream = client.messages.stream({ ...ask, thinking: { type: 'adaptive' } });
    const message = await stream.finalMessage();
    assert.deepEqual(message.content.map(({ type }) => type), ['thinking', 'text']);
    assert.ok(message.content[0].thinking && message.content[0].signature);
    assert.equal(message.content[1].text, answer);
    assert.ok(message.usage.output_tokens > 0 && message.usage.input_tokens + message.usage.cache_read_input_tokens > 0);
  },

  async 'a tool and its result'() {
    for (const create of [(body) => client.messages.create(body), (body) => client.messages.stream(body).finalMessage()]) {
      const messages = [useEcho];
      const called = await create({ ...ask, messages, tools: [echo] });
      assert.equal(called.stop_reason, 'tool_use');
      const call = called.content.at(-1);
      assert.equal(call.name, 'echo');
      assert.deepEqual(call.input, { message: 'hello world' });
      messages.push({ role: 'assistant', content: called.content });
      messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: [{ type: 'text', text: 'red river' }] }] });
      const got = await create({ ...ask, messages, tools: [echo] });
      assert.equal(got.content[0].text, 'The tool returned: red river');
    }
  },

  async 'the helper that runs tools'() {
    const said = [];
    const runner = client.beta.messages.toolRunner({
      ...ask, messages: [useEcho], stream: true,
      tools: [{ ...echo, run: ({ message }) => { said.push(message); return 'red river'; } }],
    });
    const got = await runner.runUntilDone();
    assert.equal(got.content[0].text, 'The tool returned: red river');
    assert.deepEqual(said, ['hello world']);
  },

  async 'structured output, also streamed'() {
    if (isMLX) return;
    const schema = { type: 'object', properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } }, required: ['city'], additionalProperties: false };
    const body = { ...ask, output_config: { format: { type: 'json_schema', schema } } };
    for (const message of [await client.messages.create(body), await client.messages.stream(body).finalMessage()]) {
      assert.ok(schema.properties.city.enum.includes(JSON.parse(message.content[0].text).city), JSON.stringify(message.content));
    }
  },

  async counting() {
    for (const more of [{}, { tools: [echo] }]) {
      const { input_tokens } = await client.messages.countTokens({ model, messages: question, ...more });
      const { usage } = await client.messages.create({ ...ask, ...more });
      assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
    }
  },

  async models() {
    const ids = [];
    for await (const m of client.models.list({ limit: 1 })) ids.push(m.id);
    assert.ok(ids.includes('lmcaddy/tinychat'), `${ids}`);
    const got = await client.models.retrieve(model);
    assert.ok(got.id === 'lmcaddy/tinychat' && got.display_name && !Number.isNaN(Date.parse(got.created_at)), JSON.stringify(got));
  },

  async errors() {
    const unknown = client.messages.create({ ...ask, model: 'nope' });
    await assert.rejects(unknown, (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === 'not_found_error' && !!e.requestID);
    const long = client.messages.create({ ...ask, stream: true, messages: [{ role: 'user', content: 'hello '.repeat(50_000) }] });
    await assert.rejects(long, (e) => e instanceof Anthropic.BadRequestError && /prompt is too long: \d+ tokens > \d+ maximum/.test(e.message));
    const hot = client.messages.create({ ...ask, temperature: 2 });
    await assert.rejects(hot, (e) => e instanceof Anthropic.BadRequestError && /temperature/.test(e.message));
    const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };
    const image = client.messages.create({ ...ask, messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, { type: 'image', source }] }] });
    await assert.rejects(image, (e) => e instanceof Anthropic.BadRequestError && e.message.includes('messages.0.content.1.source: is an image, and the model does not take images'));
    const wrong = client.messages.create({ ...ask, messages: [{ role: 'user', content: [{ type: 'text' }] }] });
    await assert.rejects(wrong, (e) => e instanceof Anthropic.BadRequestError && /messages\.0\.content\.0\.text/.test(e.message));
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
