'use strict';
// Has OpenAI's own library transcribe a recording and ask about one: node audio.cjs BASE_URL MODEL [ANSWER]. ANSWER is what the engine says each
// time, if that is known.

const assert = require('node:assert/strict');
const OpenAI = require('openai');

const [base, model, answer] = process.argv.slice(2);
const client = new OpenAI({ baseURL: base + '/v1', apiKey: 'none is needed', maxRetries: 0, timeout: 60_000 });

const samples = 8000;
const wav = Buffer.alloc(44 + 2 * samples);
wav.write('RIFF');
wav.writeUInt32LE(36 + 2 * samples, 4);
wav.write('WAVEfmt ', 8);
wav.set([16, 0, 0, 0, 1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0], 16); // 16,000 samples a second
wav.write('data', 36);
wav.writeUInt32LE(2 * samples, 40);
for (let i = 0; i < samples; i++) wav.writeInt16LE(Math.round(9000 * Math.sin(i / 6)), 44 + 2 * i);

const ask = async (more) => ({ model, file: await OpenAI.toFile(wav, 'said.wav'), temperature: 0, max_tokens: 8, ...more });
const isSaid = (text) => (answer === undefined ? assert.ok(text.length > 0) : assert.equal(text, answer));

(async () => {
  const got = await client.audio.transcriptions.create(await ask());
  isSaid(got.text);
  assert.equal(got.usage.total_tokens, got.usage.input_tokens + got.usage.output_tokens);
  assert.equal((await client.audio.transcriptions.create(await ask({ response_format: 'text' }))).trimEnd(), got.text);
  const verbose = await client.audio.transcriptions.create(await ask({ response_format: 'verbose_json', language: 'en' }));
  assert.deepEqual([verbose.duration, verbose.language, verbose.text.length > 0], [0.5, 'en', true]);

  let text = '', done;
  for await (const event of await client.audio.transcriptions.create(await ask({ stream: true }))) {
    if (event.type === 'transcript.text.delta') text += event.delta;
    else done = event;
  }
  assert.deepEqual([done.type, done.text, text.trim()], ['transcript.text.done', got.text, got.text]);

  const part = { type: 'input_audio', input_audio: { data: wav.toString('base64'), format: 'wav' } };
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Say:' }, part] }];
  const chat = await client.chat.completions.create({ model, messages, max_tokens: 8, reasoning_effort: 'none' });
  isSaid(chat.choices[0].message.content);
  const said = await client.responses.create({ model, input: [{ role: 'user', content: [{ type: 'input_text', text: 'Say:' }, part] }], reasoning: { effort: 'none' } });
  isSaid(said.output_text);

  for (const [more, param] of [[{ response_format: 'srt' }, 'response_format'], [{ timestamp_granularities: ['word'] }, 'timestamp_granularities'], [{ model: 'lmcaddy/tinychat' }, 'model']]) {
    await assert.rejects(client.audio.transcriptions.create(await ask(more)), (e) => e instanceof OpenAI.BadRequestError && e.param === param);
  }
})().catch((e) => {
  console.log(e.stack);
  process.exitCode = 1;
});
