'use strict';
// Runs OpenAI's own library against a server: node openai.cjs BASE_URL [remote|llama.cpp|mlx-lm]. Says what it has seen, a line for each check, and
// ends with a status that isn't 0 when a check fails. The library is found by NODE_PATH.

const assert = require('node:assert/strict');
const OpenAI = require('openai');

const model = 'lmcaddy/tinychat';
const isRemote = process.argv[3] === 'remote'; // the model is on a remote
const isMLX = process.argv[3] === 'mlx-lm'; // mlx_lm.server runs it: it has no schemas, and leaves out a text's first space
const client = new OpenAI({ baseURL: process.argv[2] + '/v1', apiKey: process.env.OPENAI_API_KEY ?? 'none is needed', maxRetries: 0, timeout: 60_000 });

const question = [{ role: 'user', content: 'What is the capital of France?' }];
const answer = 'The capital of France is Paris.';

const echo = {
  type: 'function',
  function: {
    name: 'echo',
    description: 'Says what it is told',
    parameters: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  },
};
const useEcho = { role: 'user', content: 'Use echo with message hello world' };

const schema = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Paris', 'Rome'] }, capital: { type: 'boolean' } },
  required: ['city', 'capital'],
  additionalProperties: false,
};

const checks = {
  async chat() {
    const got = await client.chat.completions.create({ model, messages: question, temperature: 0 });
    assert.equal(got.choices[0].message.content, answer);
    assert.equal(got.choices[0].finish_reason, 'stop');
    assert.equal(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens);
  },

  async streaming() {
    const stream = await client.chat.completions.create({
      model, messages: question, temperature: 0, stream: true, stream_options: { include_usage: true },
    });
    let text = '', usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, answer);
    assert.ok(usage.completion_tokens > 0);
  },

  async 'the helper that puts a stream together'() {
    const stream = client.chat.completions.stream({ model, messages: question, temperature: 0 });
    assert.equal(await stream.finalContent(), answer);
    assert.equal((await stream.finalChatCompletion()).choices[0].finish_reason, 'stop');
  },

  async 'a tool and its result'() {
    const messages = [useEcho];
    const called = await client.chat.completions.create({ model, messages, tools: [echo], temperature: 0 });
    const { message, finish_reason } = called.choices[0];
    assert.equal(finish_reason, 'tool_calls');
    assert.equal(message.tool_calls[0].function.name, 'echo');
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { message: 'hello world' });
    messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'red river' });
    const got = await client.chat.completions.create({ model, messages, tools: [echo], temperature: 0 });
    assert.equal(got.choices[0].message.content, 'The tool returned: red river');
  },

  async 'the helper that runs tools'() {
    const said = [];
    const runner = client.chat.completions.runTools({
      model, messages: [useEcho], temperature: 0, stream: true,
      tools: [{ ...echo, function: { ...echo.function, parse: JSON.parse, function: ({ message }) => { said.push(message); return 'red river'; } } }],
    });
    assert.equal(await runner.finalContent(), 'The tool returned: red river');
    assert.deepEqual(said, ['hello world']);
  },

  async 'structured output'() {
    if (isMLX) return;
    const got = await client.chat.completions.parse({
      model, temperature: 0, max_tokens: 400, messages: question,
      response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema } },
    });
    const { city, capital } = JSON.parse(got.choices[0].message.content);
    assert.ok(schema.properties.city.enum.includes(city));
    assert.equal(typeof capital, 'boolean');
  },

  async 'structured output, streamed'() {
    if (isMLX) return;
    const stream = client.chat.completions.stream({
      model, temperature: 0, max_tokens: 400, messages: question,
      response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema } },
    });
    assert.ok(schema.properties.city.enum.includes(JSON.parse(await stream.finalContent()).city));
  },

  async 'log probabilities of the chosen tokens'() {
    const asked = client.chat.completions.create({ model, messages: question, temperature: 0, max_tokens: 3, logprobs: true });
    if (isMLX) return assert.rejects(asked, OpenAI.BadRequestError);
    const got = await asked;
    const { content, refusal } = got.choices[0].logprobs;
    assert.equal(refusal, null);
    assert.ok(content.length > 0 && content.every((token) => token.top_logprobs.length === 0 && token.logprob <= 0));
  },

  async completions() {
    const got = await client.completions.create({ model, prompt: ['The capital of France is', 'The capital of France is P'], max_tokens: 4, temperature: 0 });
    const paris = isMLX ? 'Paris.' : ' Paris.';
    assert.deepEqual(got.choices.map((choice) => choice.text), [paris, 'aris.']);
    const stream = await client.completions.create({ model, prompt: 'The capital of France is', max_tokens: 4, temperature: 0, stream: true, echo: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0].text;
    assert.equal(text, 'The capital of France is' + paris);
  },

  async 'log probabilities of a completion'() {
    const asked = client.completions.create({ model, prompt: 'The capital of France is', max_tokens: 4, temperature: 0, logprobs: 1 });
    if (isMLX) return assert.rejects(asked, OpenAI.BadRequestError);
    if (isRemote) {
      await assert.rejects(asked, (e) => e instanceof OpenAI.BadRequestError && e.param === 'logprobs' && e.code === 'unsupported_value');
      return;
    }
    assert.deepEqual((await asked).choices[0].logprobs.tokens, [' P', 'ar', 'is', '.']);
  },

  async 'embeddings, as numbers and by default'() {
    const input = ['The food was delicious.', 'red river'];
    const byDefault = await client.embeddings.create({ model: 'lmcaddy/tinyembed', input });
    const numbers = await client.embeddings.create({ model: 'lmcaddy/tinyembed', input, encoding_format: 'float' });
    const short = await client.embeddings.create({ model: 'lmcaddy/tinyembed', input, dimensions: 16 });
    assert.equal(byDefault.data.length, 2);
    assert.ok(byDefault.usage.prompt_tokens > 2);
    byDefault.data.forEach(({ embedding, index }, i) => {
      assert.equal(index, i);
      assert.ok(Array.isArray(embedding) && Math.abs(Math.hypot(...embedding) - 1) < 1e-4, 'a unit vector');
      assert.equal(embedding.length, numbers.data[i].embedding.length);
      embedding.forEach((x, at) => assert.equal(x, Math.fround(numbers.data[i].embedding[at])));
      assert.equal(short.data[i].embedding.length, 16);
      assert.ok(Math.abs(Math.hypot(...short.data[i].embedding) - 1) < 1e-4, 'a unit vector of 16');
    });
  },

  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    assert.ok(ids.includes(model), `${model} is not among ${ids}`);
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async errors() {
    const unknown = client.chat.completions.create({ model: 'nope', messages: question });
    await assert.rejects(unknown, (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found' && e.param === 'model');
    const long = client.completions.create({ model, prompt: 'hello '.repeat(20_000), stream: true });
    await assert.rejects(long, (e) => e instanceof OpenAI.BadRequestError && e.code === 'context_length_exceeded');
    const input = client.embeddings.create({ model: 'lmcaddy/tinyembed', input: 'red river '.repeat(1000) });
    await assert.rejects(input, (e) => e instanceof OpenAI.BadRequestError && e.code === 'context_length_exceeded' && e.param === 'input');
    const chat = client.embeddings.create({ model, input: 'a' });
    await assert.rejects(chat, (e) => e instanceof OpenAI.BadRequestError && e.code === 'unsupported_model');
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
