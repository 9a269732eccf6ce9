'use strict';
// An MCP server on standard input and output with one tool, status, and one fault: node faulty.cjs FAULT. Further arguments
// are ignored; the tests find the process by them.

const { spawn } = require('node:child_process');
const readline = require('node:readline');

const fault = process.argv[2];

const reply = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n');
const text = (t) => ({ content: [{ type: 'text', text: t }] });

// forever writes a text again and again, as fast as it is read, and reads requests in between.
function forever(stream, piece) {
  stream.write(piece);
  setImmediate(forever, stream, piece);
}

// What a call of the tool does.
const calls = {
  dies: () => process.exit(7),
  hangs: () => {},
  'sends a huge result': (id) => reply(id, text('x'.repeat(16 << 20))),
  'never ends its line': (id) => {
    process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
    forever(process.stdout, 'x'.repeat(1 << 16));
  },
  'sends garbage': () => forever(process.stdout, 'garbage\n'.repeat(1 << 12)),
  'floods standard error': (id) => {
    process.stderr.write('x'.repeat(8 << 20) + '\n' + 'noise\n'.repeat(1 << 14));
    reply(id, text('red river'));
  },
};

const methods = {
  initialize: ({ id, params }) => {
    const capabilities = { tools: {} };
    reply(id, { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: 'faulty', version: '1' } });
  },
  'tools/list': ({ id }) => reply(id, { tools: [{ name: 'status', inputSchema: { type: 'object', properties: {} } }] }),
  'tools/call': ({ id }) => (calls[fault] ?? (() => reply(id, text('red river'))))(id),
  ping: ({ id }) => reply(id, {}),
};

switch (fault) {
  case 'exits at once':
    process.stderr.write('I have no configuration.\n');
    process.exit(3);
    break;
  case 'greets on standard output':
    process.stdout.write('Server started.\n\n[info] ready\n');
    break;
  case 'ignores signals':
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
    setInterval(() => {}, 1 << 30); // so it outlives its standard input
    if (process.argv[3] !== 'alone') {
      spawn(process.execPath, [__filename, fault, 'alone', ...process.argv.slice(3)], { stdio: 'ignore', detached: process.argv.includes('detached') });
    }
    break;
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined || message.method === undefined) return;
  const method = methods[message.method];
  if (method) method(message);
  else process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'Method not found' } }) + '\n');
});
