'use strict';
// Runs Ollama's own library, and tools that speak only its API, against a server: node ollama.cjs BASE_URL [remote]. Says what it has seen, a
// line for each check, and ends with a status that isn't 0 when a check fails. The libraries are found by NODE_PATH. The server has a hub with
// acme/Tiny-GGUF, unless its models are on a remote.

const assert = require('node:assert/strict');
const { Ollama } = require('ollama');
const { ChatOllama, OllamaEmbeddings } = require('@langchain/ollama');
const { generateText, jsonSchema, stepCountIs, streamText, tool, embed } = require('ai');
const { createOllama } = require('ollama-ai-provider-v2');

globalThis.AI_SDK_LOG_WARNINGS = false;

const host = process.argv[2];
const isRemote = process.argv[3] === 'remote'; // the models are on a remote, which loads and keeps them as it likes
const model = 'tinychat:latest';
const client = new Ollama({ host });
const options = { temperature: 0 };

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
  type: 'object', properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } }, required: ['city'], additionalProperties: false,
};

const loaded = async () => (await client.ps()).models;

const checks = {
  async chat() {
    const got = await client.chat({ model, messages: question, options });
    assert.equal(got.message.content, answer);
    assert.equal(got.done_reason, 'stop');
    assert.ok(got.total_duration > 0 && got.eval_duration > 0 && got.prompt_eval_count > 0 && got.eval_count > 0);
    assert.ok(Date.parse(got.created_at) > 0);
  },

  async streaming() {
    let text = '', last;
    for await (const part of await client.chat({ model, messages: question, options, stream: true })) {
      text += part.message.content;
      last = part;
    }
    assert.equal(text, answer);
    assert.ok(last.done && last.eval_count > 0);
  },

  async generate() {
    const got = await client.generate({ model, prompt: question[0].content, options });
    assert.equal(got.response, answer);
    let text = '';
    for await (const part of await client.generate({ model, prompt: question[0].content, options, stream: true })) text += part.response;
    assert.equal(text, answer);
    const raw = await client.generate({ model, prompt: '<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n', raw: true, options: { ...options, num_predict: 20 } });
    assert.ok(raw.response.includes('Paris'), raw.response);
  },

  async 'a context continues a conversation'() {
    const told = await client.generate({ model, prompt: 'My name is Ada.', options });
    const asked = await client.generate({ model, prompt: 'What is my name?', context: told.context, options });
    assert.match(asked.response, /Ada/);
    assert.doesNotMatch((await client.generate({ model, prompt: 'What is my name?', options })).response, /Ada/);
    await assert.rejects(client.generate({ model, prompt: 'What is my name?', context: [1, 2, 3] }), /can't read "context"/);
  },

  async 'a tool and its result'() {
    const messages = [useEcho];
    const called = await client.chat({ model, messages, tools: [echo], options });
    const [call] = called.message.tool_calls;
    assert.equal(call.function.name, 'echo');
    assert.deepEqual(call.function.arguments, { message: 'hello world' });
    messages.push(called.message, { role: 'tool', content: 'red river', tool_name: 'echo' });
    const said = await client.chat({ model, messages, tools: [echo], options });
    assert.match(said.message.content, /red river/);
  },

  async 'a tool in a stream'() {
    const calls = [];
    for await (const part of await client.chat({ model, messages: [useEcho], tools: [echo], options, stream: true })) calls.push(...(part.message.tool_calls ?? []));
    assert.deepEqual(calls.map(c => c.function.arguments), [{ message: 'hello world' }]);
  },

  async 'structured output'() {
    const got = await client.chat({ model, messages: question, format: schema, options });
    assert.ok(schema.properties.city.enum.includes(JSON.parse(got.message.content).city));
    const json = await client.chat({ model, messages: question, format: 'json', options: { ...options, num_predict: 50 } });
    assert.ok(json.message.content.startsWith('{'));
  },

  async thinking() {
    const off = await client.chat({ model, messages: [useEcho], tools: [echo], think: false, options });
    assert.ok(!off.message.thinking);
    const on = await client.chat({ model, messages: [useEcho], tools: [echo], think: true, options });
    assert.ok(on.message.thinking.length > 0);
    let thinking = '';
    for await (const part of await client.chat({ model, messages: [useEcho], tools: [echo], think: 'low', options, stream: true })) thinking += part.message.thinking ?? '';
    assert.ok(thinking.length > 0);
  },

  async embeddings() {
    const got = await client.embed({ model: 'tinyembed', input: ['red river', 'blue sky'] });
    assert.equal(got.embeddings.length, 2);
    const short = await client.embed({ model: 'tinyembed', input: 'red river', dimensions: 4 });
    assert.equal(short.embeddings[0].length, 4);
    const one = await client.embeddings({ model: 'tinyembed', prompt: 'red river' });
    assert.equal(one.embedding.length, got.embeddings[0].length);
    await client.embed({ model: 'tinyembed', input: 'word '.repeat(20_000) });
    await assert.rejects(client.embed({ model: 'tinyembed', input: 'word '.repeat(20_000), truncate: false }), /exceeds the context length/);
  },

  async 'models: list, show, ps, version'() {
    const { models } = await client.list();
    const one = models.find(m => m.name === 'lmcaddy/tinychat:latest');
    if (isRemote) {
      assert.ok(one.size > 0 && one.digest.length === 64 && one.modified_at);
      assert.ok((await client.show({ model })).capabilities.includes('tools'));
      assert.deepEqual((await loaded()).map(m => m.name).filter(name => name === one.name), [one.name]);
      return;
    }
    assert.ok(one.size > 0 && one.digest.length === 64 && one.details.format === 'gguf' && one.modified_at);
    const shown = await client.show({ model });
    assert.deepEqual(shown.capabilities, ['completion', 'tools', 'thinking']);
    assert.equal(shown.model_info['general.architecture'], 'llama');
    assert.equal(shown.model_info['llama.context_length'], 8192);
    assert.ok((await loaded()).some(m => m.name === one.name && m.context_length > 0 && Date.parse(m.expires_at) > Date.now()));
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+/);
    await assert.rejects(client.show({ model: 'nothing' }), /not found/);
  },

  async 'keep_alive'() {
    await client.chat({ model, messages: question, options, keep_alive: '90s' });
    const [one] = (await loaded()).filter(m => m.name === 'lmcaddy/tinychat:latest');
    const left = Date.parse(one.expires_at) - Date.now();
    assert.ok(left > 0 && left <= 90_000, `${left} ms`);
    await client.chat({ model, messages: question, options, keep_alive: -1 });
    assert.ok((await loaded()).every(m => m.name !== one.name || Date.parse(m.expires_at) > Date.now() + 1e10));
    assert.equal((await client.generate({ model, prompt: '', keep_alive: 0 })).done_reason, 'unload');
    assert.ok((await loaded()).every(m => m.name !== one.name));
    assert.equal((await client.generate({ model, prompt: '' })).done_reason, 'load');
  },

  async 'pull, copy, create, delete'() {
    const statuses = [];
    for await (const part of await client.pull({ model: 'hf.co/acme/Tiny-GGUF:Q8_0', stream: true })) {
      statuses.push(part.status);
      if (part.digest) assert.ok(part.total > 0);
    }
    assert.equal(statuses[0], 'pulling manifest');
    assert.equal(statuses.at(-1), 'success');
    assert.equal((await client.pull({ model: 'acme/tiny' })).status, 'success');
    await client.copy({ source: 'hf.co/acme/Tiny-GGUF:Q8_0', destination: 'mine' });
    assert.equal((await client.chat({ model: 'mine:latest', messages: question, options })).message.content, answer);
    assert.equal((await client.create({ model: 'brief', from: 'mine', system: 'You are brief.', parameters: { temperature: 0, num_predict: 3 } })).status, 'success');
    const short = await client.chat({ model: 'brief', messages: question });
    assert.equal(short.eval_count, 3);
    assert.equal(short.done_reason, 'length');
    assert.equal((await client.show({ model: 'brief' })).system, 'You are brief.');
    for (const name of ['mine', 'brief', 'acme/tiny']) await client.delete({ model: name });
    assert.ok(!(await client.list()).models.some(m => /tiny:|mine|brief/.test(m.name) && !m.name.startsWith('lmcaddy/')));
    await assert.rejects(client.chat({ model: 'mine', messages: question }), /not found, try pulling it first/);
    await assert.rejects(client.pull({ model: 'nothing-like-this' }), /not found/);
  },

  async abort() {
    const stream = await client.generate({ model, prompt: 'Count to thirty', options, stream: true });
    let parts = 0;
    await assert.rejects(async () => {
      for await (const _ of stream) if (++parts === 2) stream.abort();
    }, { name: 'AbortError' });
    assert.equal((await client.chat({ model, messages: question, options })).message.content, answer);
  },

  async 'LangChain'() {
    const chat = new ChatOllama({ baseUrl: host, model, temperature: 0 });
    assert.equal((await chat.invoke(question[0].content)).content, answer);
    let text = '';
    for await (const part of await chat.stream(question[0].content)) text += part.content;
    assert.equal(text, answer);
    const called = await chat.bindTools([echo]).invoke(useEcho.content);
    assert.deepEqual(called.tool_calls.map(c => [c.name, c.args]), [['echo', { message: 'hello world' }]]);
    const object = await chat.withStructuredOutput(schema, { method: 'jsonSchema' }).invoke(question[0].content);
    assert.ok(schema.properties.city.enum.includes(object.city));
    const vectors = await new OllamaEmbeddings({ baseUrl: host, model: 'tinyembed' }).embedDocuments(['red', 'blue']);
    assert.equal(vectors.length, 2);
  },

  async "Vercel's AI SDK"() {
    const ollama = createOllama({ baseURL: host + '/api' });
    const settings = { model: ollama(model), temperature: 0, maxRetries: 0 };
    assert.equal((await generateText({ ...settings, prompt: question[0].content })).text, answer);
    let text = '';
    for await (const part of streamText({ ...settings, prompt: question[0].content }).textStream) text += part;
    assert.equal(text, answer);
    const said = [];
    const tools = { echo: tool({ description: 'Says what it is told', inputSchema: jsonSchema(echo.function.parameters), execute: async ({ message }) => { said.push(message); return 'red river'; } }) };
    const used = await generateText({ ...settings, prompt: useEcho.content, tools, stopWhen: stepCountIs(3) });
    assert.deepEqual(said, ['hello world']);
    assert.match(used.text, /red river/);
    const { embedding } = await embed({ model: ollama.textEmbeddingModel('tinyembed'), value: 'red river' });
    assert.ok(embedding.length > 0);
  },
};

(async () => {
  for (const [name, check] of Object.entries(checks)) {
    if (isRemote && ['keep_alive', 'pull, copy, create, delete', 'abort'].includes(name)) continue;
    try {
      await check();
      console.log('ok   ' + name);
    } catch (e) {
      process.exitCode = 1;
      console.log('FAIL ' + name + ': ' + (e.stack ?? e));
    }
  }
})();
