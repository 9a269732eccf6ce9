'use strict';
// Runs Vercel's AI SDK against a server, in the words of each API: node ai-sdk.cjs BASE_URL MCP_URL. MCP_URL is that of
// server-everything. Its providers check each answer against schemas of their own, more strictly than the official libraries do.
// Says what it has seen, a line for each check, and ends with a status that isn't 0 when a check fails. The libraries are found
// by NODE_PATH.

const assert = require('node:assert/strict');
const { generateObject, generateText, jsonSchema, stepCountIs, streamObject, streamText, tool } = require('ai');
const { createAnthropic } = require('@ai-sdk/anthropic');
const { createOpenAI } = require('@ai-sdk/openai');
const { createOpenResponses } = require('@ai-sdk/open-responses');
const { createOpenAICompatible } = require('@ai-sdk/openai-compatible');

globalThis.AI_SDK_LOG_WARNINGS = false; // of providers for the version before

const [server, mcp] = process.argv.slice(2);
const base = server + '/v1';
const name = 'lmcaddy/tinychat'; // of models whose names it knows, the library leaves out fields
const openai = createOpenAI({ baseURL: base, apiKey: 'none is needed' });
const models = {
  anthropic: createAnthropic({ baseURL: base, apiKey: 'none is needed' })(name),
  'openai-compatible': createOpenAICompatible({ name: 'local', baseURL: base, supportsStructuredOutputs: true, includeUsage: true })(name),
  responses: openai.responses(name),
  'open-responses': createOpenResponses({ name: 'local', url: base + '/responses' })(name),
};

const prompt = 'What is the capital of France?';
const answer = 'The capital of France is Paris.';
const settings = { temperature: 0, maxRetries: 0, maxOutputTokens: 400 };

const said = [];
const tools = {
  echo: tool({
    description: 'Says what it is told',
    inputSchema: jsonSchema({ type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }),
    execute: async ({ message }) => { said.push(message); return 'red river'; },
  }),
};
const useEcho = { prompt: 'Use echo with message hello world', tools, stopWhen: stepCountIs(3) };

const cities = ['Paris', 'Rome'];
const schema = jsonSchema({
  type: 'object', properties: { city: { type: 'string', enum: cities } }, required: ['city'], additionalProperties: false,
});

// streamed reads a stream of parts to its end. It raises what went wrong, which the library tells as a part.
async function streamed(result) {
  let text = '';
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') text += part.text;
  }
  return text;
}

const checksOf = (model) => ({
  async text() {
    const got = await generateText({ model, prompt, ...settings });
    assert.equal(got.text, answer);
    assert.equal(got.finishReason, 'stop');
    assert.ok(got.usage.inputTokens > 0 && got.usage.outputTokens > 0);
  },

  async 'text, streamed'() {
    const result = streamText({ model, prompt, ...settings });
    assert.equal(await streamed(result), answer);
    assert.equal(await result.finishReason, 'stop');
    assert.ok((await result.usage).outputTokens > 0);
  },

  async tools() {
    said.length = 0;
    const got = await generateText({ model, ...useEcho, ...settings });
    assert.deepEqual(said, ['hello world']);
    assert.equal(got.text, 'The tool returned: red river');
    assert.equal(got.steps[0].finishReason, 'tool-calls');
  },

  async 'tools, streamed'() {
    said.length = 0;
    const result = streamText({ model, ...useEcho, ...settings });
    assert.match(await streamed(result), /The tool returned: red river$/);
    assert.deepEqual(said, ['hello world']);
  },

  async 'structured output'() {
    const { object } = await generateObject({ model, schema, prompt, ...settings });
    assert.ok(cities.includes(object.city), JSON.stringify(object));
  },

  async 'structured output, streamed'() {
    const result = streamObject({ model, schema, prompt, ...settings });
    for await (const part of result.fullStream) if (part.type === 'error') throw part.error;
    assert.ok(cities.includes((await result.object).city));
  },
});

// checksOfResponses are for the provider that runs tools on the server and keeps conversations there.
const checksOfResponses = (model) => ({
  async 'a conversation'() {
    const first = await generateText({ model, prompt: 'My name is Ada.', ...settings });
    const previousResponseId = first.providerMetadata.openai.responseId;
    const got = await generateText({ model, prompt: 'What is my name?', providerOptions: { openai: { previousResponseId } }, ...settings });
    assert.equal(got.text, 'Your name is Ada.');
  },

  async 'remote MCP'() {
    const tools = { mcp: openai.tools.mcp({ serverLabel: 'everything', serverUrl: mcp, allowedTools: ['echo'], requireApproval: 'never' }) };
    const request = { model, prompt: useEcho.prompt, tools, ...settings };
    const got = await generateText(request);
    assert.match(got.text, /The tool returned: Echo: hello world$/);
    assert.equal(got.toolResults.length, 1);
    assert.match(await streamed(streamText(request)), /The tool returned: Echo: hello world$/);
  },
});

(async () => {
  let failed = 0, all = 0;
  for (const [api, model] of Object.entries(models)) {
    const checks = { ...checksOf(model), ...(api === 'responses' ? checksOfResponses(model) : {}) };
    for (const [name, check] of Object.entries(checks)) {
      all++;
      try {
        await check();
        console.log(`ok: ${api}: ${name}`);
      } catch (e) {
        failed++;
        console.log(`failed: ${api}: ${name}: ${e.stack}`, e.cause ?? '');
      }
    }
  }
  console.log(`${all} checks, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
})();
