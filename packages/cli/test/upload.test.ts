import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { API_KEY_HEADER } from '@undertone/contract';
import { FIRST_PAUSE_MS, longerPause } from '../src/client.ts';
import { silentWav } from './support/silence.ts';
import { talkWav } from './support/talk.ts';
import { output, type Serving, serve, start, undertone } from './support/undertone.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const KEY = 'a-key-for-the-upload-tests';
const TERMINAL = `data:text/javascript,${encodeURIComponent('Object.assign(process.stderr, { isTTY: true, columns: 90 })')}`;

describe('upload, result and delete', () => {
  let folder: string;
  let server: Serving;
  let env: Record<string, string>;
  let talk: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'undertone-upload-'));
    talk = join(folder, 'talk.wav');
    await writeFile(talk, talkWav(32));
    server = await serve(join(folder, 'data'), [], { SERVICE_API_KEY: KEY });
    env = { SERVICE_API_KEY: KEY, SERVICE_URL: server.url };
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('upload --wait shows the bar on a terminal, then a strip, what it means and a row for each step', async () => {
    const nodeArgs = ['--import', TERMINAL];
    const { code, stdout, stderr } = await undertone(['upload', talk, '--wait'], { env, nodeArgs });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Uploading +█+ 100 %/);
    assert.match(stderr, new RegExp(`Request ID: ${UUID.source.slice(1, -1)}\\n`));
    const [strip = '', legend = '', empty, ...rows] = stdout.trimEnd().split('\n');
    assert.match(strip, /^[AHNS·]{7}$/);
    const shares = [...legend.matchAll(/[AHNS·] (\w+) (\d+) %/g)];
    const total = shares.reduce((sum, [, , share]) => sum + Number(share), 0);
    assert(Math.abs(total - 100) <= shares.length, legend);
    assert.equal(empty, '');
    assert.deepEqual(
      rows.map((row) => /^ (\d\d:\d\d) {2}\w+ +\d+\.\d %/.exec(row)?.[1]),
      ['00:00', '00:05', '00:10', '00:15', '00:20', '00:25', '00:30'],
    );
  });

  test('the strip is coloured where colour is wanted', async () => {
    const forced = await undertone(['upload', talk, '--wait'], { env: { ...env, FORCE_COLOR: '1' } });
    assert.match(forced.stdout.split('\n')[0] ?? '', /\[3\dm█.\[39m/);
  });

  test('upload alone prints the request ID, result the timeline, and delete ends it', async () => {
    const uploaded = await undertone(['upload', talk], { env });
    const id = uploaded.stdout.trim();
    assert.match(id, UUID);
    assert.deepEqual([uploaded.code, uploaded.stderr], [0, '']);
    const result = await undertone(['result', id, '--wait', '--json'], { env });
    const { request_id, status, emotions } = JSON.parse(result.stdout);
    assert.deepEqual([request_id, status, emotions.length], [id, 'completed', 7]);
    assert.equal((await undertone(['delete', id], { env })).code, 0);
    const gone = await undertone(['result', id], { env });
    assert.deepEqual([gone.code, gone.stdout], [1, '']);
    assert.match(gone.stderr, /^undertone: .*request/);
  });

  test('--csv, --srt and --json say the same, with the model and the step that were asked for', async () => {
    const args = ['upload', talk, '--model', '7emotions', '--interval', '10'];
    const csv = (await undertone([...args, '--csv'], { env })).stdout.trimEnd().split('\n');
    assert.equal(csv[0], 't,seconds,emotion,confidence');
    assert.deepEqual(
      csv.slice(1).map((line) => line.split(',').slice(0, 2).join()),
      ['00:00,0', '00:10,10', '00:20,20', '00:30,30'],
    );
    const srt = (await undertone([...args, '--srt'], { env })).stdout;
    const [, , emotion, confidence] = csv[2]?.split(',') ?? [];
    const percent = Math.round(Number(confidence) * 100);
    assert(srt.includes(`2\n00:00:10,000 --> 00:00:20,000\n${emotion} ${percent} %\n`), srt);
    const json = JSON.parse((await undertone([...args, '--json'], { env })).stdout);
    assert.deepEqual(
      json.emotions.map((step: { t: string; emotion: string; confidence: number }) =>
        Object.values(step).join(),
      ),
      csv.slice(1).map((line) => line.replace(/^([^,]+),\d+/, '$1')),
    );
  });

  test('a recording can come through a pipe', async () => {
    const { code, stdout } = await undertone(['upload', '-', '--csv'], { env, input: talkWav(6) });
    assert.equal(code, 0);
    assert.equal(stdout.trimEnd().split('\n').length, 3);
  });

  test('what cannot be done is said in a sentence, with exit code 1', async () => {
    const short = join(folder, 'short.wav');
    await writeFile(short, silentWav(2));
    const wrongs: [string[], Record<string, string>, RegExp][] = [
      [['upload', join(folder, 'missing.wav')], env, /missing\.wav cannot be read: there is no such file/],
      [['upload', short, '--wait'], env, /5 s/],
      [['upload', talk], { ...env, SERVICE_API_KEY: '' }, /set SERVICE_API_KEY/],
      [['upload', talk], { ...env, SERVICE_API_KEY: 'another' }, /key/],
      [['result', 'that-one'], env, /"that-one" is not a request_id/],
      [['delete', '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10'], env, /request/],
    ];
    for (const [args, variables, says] of wrongs) {
      const { code, stdout, stderr } = await undertone(args, { env: variables });
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, says);
      assert.doesNotMatch(stderr, /\n {4}at /, 'no stack');
    }
  });

  test('a command line that makes no sense is exit code 2', async () => {
    const wrongs: [string[], Record<string, string>, RegExp][] = [
      [['--interval', '0.5'], {}, /--interval/],
      [['--json', '--csv'], {}, /--json/],
      [['--model', '6emotions'], {}, /6emotions/],
      [['--url', 'nowhere'], {}, /SERVICE_URL/],
      [[], { SERVICE_ASYNCH_URL: 'nowhere' }, /SERVICE_ASYNCH_URL/],
      [[], { SERVICE_URL: '', SERVICE_PORT: 'http' }, /SERVICE_PORT must be/],
    ];
    for (const [args, variables, says] of wrongs) {
      const { code, stderr } = await undertone(['upload', talk, ...args], { env: { ...env, ...variables } });
      assert.equal(code, 2, stderr);
      assert.match(stderr, says);
    }
  });

  test('the server is found by --url, SERVICE_URL or SERVICE_PORT; the asynch address alone goes before them', async () => {
    const unknown = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';
    const { port } = new URL(server.url);
    // Nobody listens on port 1.
    const nobody = 'http://127.0.0.1:1';
    const asynch = `${server.url}/v1/asynch`;
    const found: [string[], Record<string, string>][] = [
      [[], { SERVICE_URL: server.url }],
      [[], { SERVICE_PORT: port }],
      [[], { SERVICE_URL: `${server.url}/`, SERVICE_PORT: '1' }],
      [['--url', server.url], { SERVICE_URL: nobody, SERVICE_PORT: '1' }],
      [[], { SERVICE_URL: nobody, SERVICE_ASYNCH_URL: asynch }],
      [['--asynch-url', asynch], { SERVICE_URL: nobody, SERVICE_ASYNCH_URL: `${nobody}/v1/asynch` }],
    ];
    for (const [args, variables] of found) {
      const asked = await undertone(['delete', unknown, ...args], {
        env: { SERVICE_API_KEY: KEY, ...variables },
      });
      assert.equal(asked.code, 1);
      assert.match(asked.stderr, /no request/, JSON.stringify([args, variables]));
    }
    const lost = await undertone(['delete', unknown, '--url', nobody], { env });
    assert.match(lost.stderr, /Is the server running\? `undertone serve` starts one\./);
    const both = await undertone(['delete', unknown, '--url', nobody], {
      env: { ...env, SERVICE_ASYNCH_URL: asynch },
    });
    assert.match(both.stderr, /SERVICE_ASYNCH_URL goes before --url/);
    assert.match(both.stderr, /no request/);
  });

  test('a result that is not ready says how far it is; Ctrl-C stops the wait for it and says how to go on', async () => {
    const response = await fetch(`${server.url}/v1/asynch/upload/initiate?file_name=talk.wav&part_count=1`, {
      headers: { [API_KEY_HEADER]: KEY },
    });
    const { request_id: id } = (await response.json()) as { request_id: string };
    const asked = await undertone(['result', id], { env });
    assert.deepEqual([asked.code, asked.stdout], [1, '']);
    assert.equal(asked.stderr, 'undertone: Not finished yet: uploading. Add --wait to wait for it.\n');
    const child = start(['result', id, '--wait'], { env, nodeArgs: ['--import', TERMINAL] });
    child.stderr?.once('data', () => child.kill('SIGINT'));
    const [stderr, [code]] = await Promise.all([output(child.stderr), once(child, 'close')]);
    assert.equal(code, 1);
    assert.ok(stderr.includes(`Stopped waiting. The request continues: \`undertone result ${id} --wait\`.`));
  });

  test('whoever waits asks after half a second first, and every 5 seconds in the end', () => {
    const asked = [FIRST_PAUSE_MS];
    while (asked.length < 12) asked.push(longerPause(asked.at(-1) ?? 0));
    assert.equal(asked[0], 500);
    assert.deepEqual(
      asked,
      asked.toSorted((a, b) => a - b),
    );
    assert.equal(asked.at(-1), 5_000);
  });

  test('Ctrl-C after the upload leaves the request to the server, which finishes it', async () => {
    const long = join(folder, 'long.wav');
    await writeFile(long, talkWav(300));
    const child = start(['upload', long, '--wait'], { env, nodeArgs: ['--import', TERMINAL] });
    child.stderr?.on('data', (piece: Buffer) => {
      if (/Classifying|Waiting/.test(piece.toString())) child.kill('SIGINT');
    });
    const [stderr, [code]] = await Promise.all([output(child.stderr), once(child, 'close')]);
    assert.equal(code, 1);
    const [, id = ''] = /Stopped waiting.*`undertone result (\S+) --wait`/.exec(stderr) ?? [];
    assert.match(id, UUID);
    const { stdout } = await undertone(['result', id, '--wait', '--csv'], { env });
    assert.equal(stdout.trimEnd().split('\n').length, 61);
  });
});
