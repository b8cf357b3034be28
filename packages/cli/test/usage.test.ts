import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError, EmotionClient } from '@undertone/sdk';
import { freePort } from '@undertone/testing/ready';
import { inRealTime } from '../src/live-audio.ts';
import { explain } from '../src/user-error.ts';
import { temporaryFolder, undertone } from './support/undertone.ts';

const KEY = 'a-key-for-the-usage-tests';

test('an invalid command line exits with 2, before anything is sent or stored', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'a.wav'), 'x');
  const output = join(folder, 'rows.jsonl');
  const wrongs: [string[], RegExp][] = [
    [['upload', folder, '--json'], /--json and --srt are for one recording/],
    [['upload', folder, '--srt'], /--jsonl or --csv/],
    [['upload', folder, '-'], /Standard input/],
    [['upload', folder, '--csv', '--output', output], /two formats/],
    [['classify', folder, '--csv', '--output', output], /two formats/],
    [['classify', '-', '-'], /give - once/],
    [['classify', '--server', '--weights', 'open', folder], /--weights is for this machine/],
    [['webhooks', 'test', 'notaurl'], /begins with http/],
    [['webhooks', 'test', ''], /begins with http/],
    [['keys', 'create', ''], /1 to 100 printable characters/],
    [['result', 'abc'], /'abc' is invalid.*request ID that `undertone upload` printed/],
    [['delete', '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10', 'abc'], /'abc' is invalid/],
    [['list', '--all', '--limit', '3'], /--all/],
  ];
  for (const [args, says] of wrongs) {
    const { code, stdout, stderr } = await undertone(args, { env: { SERVICE_DATA_DIR: folder } });
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`);
    assert.match(stderr, says);
  }
});

test('a web address is no path, and the answer says what to do', async () => {
  for (const command of ['classify', 'upload', 'listen']) {
    const { code, stderr } = await undertone([command, 'https://example.org/a.wav'], {
      env: { SERVICE_API_KEY: KEY },
    });
    assert.equal(code, 2, stderr);
    assert.equal(
      stderr,
      'undertone: https://example.org/a.wav is an address, not a file. Download it first (`curl -fLO https://example.org/a.wav`), or pipe it in and use - as the path.\n',
    );
  }
  assert.match((await undertone(['classify', 'file:///a.wav'])).stderr, /Give the path of the file\.\n$/);
});

test('errors use the words of the command line, not of the client library', async () => {
  const client = new EmotionClient({ apiKey: KEY, baseUrl: 'nowhere', asynchUrl: 'nowhere' });
  const problems: unknown[] = [];
  try {
    client.validateConfig();
  } catch (error) {
    problems.push(error);
  }
  const unreachable = new EmotionClient({ apiKey: KEY, baseUrl: `http://127.0.0.1:${await freePort()}` });
  problems.push(await unreachable.models().catch((error: unknown) => error));
  assert.equal(problems.length, 2);
  for (const problem of problems) {
    assert.match(explain(problem), /SERVICE_URL/);
    assert.doesNotMatch(explain(problem), /baseUrl|asynchUrl|asynch\.|option/);
  }
  assert.ok(problems[0] instanceof ConfigError);
});

test('a slow reader of a live file causes no warning', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  const chunks = (async function* () {
    yield new Uint8Array(400);
  })();
  const format = { sampleRate: 8_000, encoding: 'mulaw', channels: 1 } as const;
  let bytes = 0;
  for await (const chunk of inRealTime({ format, bytesPerSecond: 1_000, chunks })) {
    bytes += chunk.length;
    await sleep(150); // each chunk lasts 100 ms
  }
  await sleep(10);
  process.off('warning', note);
  assert.equal(bytes, 400);
  assert.deepEqual(warnings, []);
});
