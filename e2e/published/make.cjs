'use strict';
// Makes JSON schemas of the types that OpenAI and Anthropic publish with their libraries, for the Go tests to hold our answers
// against. Run it after the versions in package.json have changed, in the repository's folder:
//
//	tools/node.sh .cache/published published
//	NODE_PATH=.cache/published/node_modules node e2e/published/make.cjs .cache/published translate/testdata/published
//
// The schemas are as strict as the types: no field is missing, and none is there that the types don't have.

const fs = require('node:fs');
const path = require('node:path');
const { createGenerator } = require('ts-json-schema-generator');

const [installed, into] = process.argv.slice(2).map((p) => path.resolve(p));

// Only the providers' own servers have these to say. All of them came after the first version of the APIs, so clients do without
// them; several refuse null where they want the thing or nothing.
const theirs = {
  Message: ['container', 'diagnostics', 'stop_details'],
  Usage: ['cache_creation', 'inference_geo', 'output_tokens_details', 'server_tool_use', 'service_tier', 'speed'],
  MessageDeltaUsage: ['output_tokens_details', 'server_tool_use'],
  'RawMessageDeltaEvent.Delta': ['container', 'stop_details'],
  TextBlock: ['citations'],
  ToolUseBlock: ['caller', 'toolset_name'],
  ModelInfo: ['capabilities', 'deprecated_at', 'lifecycle', 'line', 'retires_at'],
  ChatCompletion: ['moderation', 'service_tier'],
  ChatCompletionChunk: ['moderation', 'service_tier'],
  ChatCompletionMessage: ['annotations', 'audio', 'function_call'],
  'ChatCompletionChunk.Choice.Delta': ['function_call'],
  // The library itself adds output_text.
  Response: ['conversation', 'moderation', 'output_text', 'prompt', 'prompt_cache_options', 'prompt_cache_retention'],
  ResponseFunctionToolCall: ['caller'],
  ResponseFunctionToolCallItem: ['caller', 'created_by'],
  ResponseFunctionToolCallOutputItem: ['caller', 'created_by'],
};

// What tools on the providers' servers do.
const elsewhere = /ServerTool|WebSearch|WebFetch|CodeExecution|ToolSearch|ContainerUpload|Citation|Redacted|Audio|CodeInterpreter|Computer|FileSearch|ImageGen|Shell|ApplyPatch|Program|AdditionalTools|McpApproval|ReasoningSummary|ResponseRefusal|OutputRefusal|AnnotationAdded|InputFile/;

function trim(definitions) {
  for (const [name, fields] of Object.entries(theirs)) {
    const type = definitions[name];
    for (const field of type ? fields : []) {
      if (!(field in type.properties)) throw new Error(`${name} has no ${field} any more`);
      delete type.properties[field];
      if (type.required) type.required = type.required.filter((f) => f !== field);
    }
  }
  const visit = (schema) => {
    if (schema === null || typeof schema !== 'object') return;
    if (Array.isArray(schema.anyOf)) schema.anyOf = schema.anyOf.filter((s) => !elsewhere.test(s.$ref ?? ''));
    Object.values(schema).forEach(visit);
  };
  visit(definitions);
  const used = {};
  const keep = (name) => {
    if (name in used) return;
    used[name] = definitions[name];
    for (const [, ref] of JSON.stringify(definitions[name]).matchAll(/"#\/definitions\/([^"]+)"/g)) keep(decodeURIComponent(ref));
  };
  keep('Published');
  return used;
}

for (const [name, library] of [['openai', 'openai'], ['anthropic', '@anthropic-ai/sdk']]) {
  const types = path.join(installed, `${name}.ts`); // beside the libraries, where their types are found
  fs.copyFileSync(path.join(__dirname, `${name}.ts`), types);
  const tsconfig = path.join(installed, 'tsconfig.json');
  fs.writeFileSync(tsconfig, JSON.stringify({ compilerOptions: { strict: true, module: 'node16', moduleResolution: 'node16', types: [] } }));
  const { definitions } = createGenerator({ path: types, tsconfig, type: 'Published', jsDoc: 'none', skipTypeCheck: true }).createSchema('Published');
  const { version, license } = JSON.parse(fs.readFileSync(path.join(installed, 'node_modules', library, 'package.json')));
  const lines = Object.entries(trim(definitions)).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, type]) => `${JSON.stringify(key)}: ${JSON.stringify(type)}`);
  const comment = `From the types of the npm package ${library} ${version} (${license}), by e2e/published/make.cjs`;
  fs.mkdirSync(into, { recursive: true });
  fs.writeFileSync(path.join(into, `${name}.json`), `{"$schema": "http://json-schema.org/draft-07/schema#", "$comment": ${JSON.stringify(comment)},\n"definitions": {\n${lines.join(',\n')}\n}}\n`);
}
