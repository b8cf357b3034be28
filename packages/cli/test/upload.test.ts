import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { ADVISED_MIN_CONFIDENCE, API_KEY_HEADER, type DetailedElement } from '@undertone/contract';
import { freePort } from '@undertone/testing/ready';
import { oneSidedCall, talkWav } from '@undertone/testing/talk';
import { silentWav } from '@undertone/testing/wav';
import { Webhook } from 'standardwebhooks';
import { output, type Serving, serve, start, undertone, undertoneProcess } from './support/undertone.ts';

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
    env = { SERVICE_API_KEY: KEY, SERVICE_URL: server.url, XDG_STATE_HOME: join(folder, 'state') };
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('upload --wait shows a progress bar, a row per segment, a strip and its legend', async () => {
    const nodeArgs = ['--import', TERMINAL];
    const { code, stdout, stderr } = await undertoneProcess(['upload', talk, '--wait'], { env, nodeArgs });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Uploading +█+ 100 %/);
    assert.match(stderr, new RegExp(`Request ID: ${UUID.source.slice(1, -1)}\\n`));
    const rows = stdout.trimEnd().split('\n');
    const [empty, strip = '', legend = ''] = rows.splice(-3);
    assert.match(strip, /^[AHNS·_]{7}$/);
    const shares = [...legend.matchAll(/[AHNS·_] ([\w ]+) (\d+) %/g)];
    const total = shares.reduce((sum, [, , share]) => sum + Number(share), 0);
    assert(Math.abs(total - 100) <= shares.length, legend);
    assert.equal(empty, '');
    const places = rows.map((row) => /^(\d\d:\d\d) - (\d\d:\d\d) {2}(\w+ +\d+\.\d %|no speech)/.exec(row));
    assert.deepEqual([places[0]?.[1], places.at(-1)?.[2]], ['00:00', '00:32']);
    assert.deepEqual(
      places.slice(1).map((place) => place?.[1]),
      places.slice(0, -1).map((place) => place?.[2]),
      'without gaps',
    );
  });

  test('--details prints a line for every step, with its speech and all probabilities', async () => {
    const { stdout } = await undertone(['upload', talk, '--details'], { env });
    const steps = stdout.matchAll(/^ (\d\d:\d\d) .*\n +\d\.\d s of speech, angry \d\.\d{3}, happy /gm);
    const starts = ['00:00', '00:05', '00:10', '00:15', '00:20', '00:25', '00:30'];
    assert.deepEqual(
      [...steps].map(([, start]) => start),
      starts,
    );
  });

  test('--channels separate draws a strip per channel, and labels a silent channel as no speech', async () => {
    const call = join(folder, 'call.wav');
    await writeFile(call, oneSidedCall(talkWav(20)));
    const args = ['upload', call, '--channels', 'separate'];
    const { stdout, stderr, code } = await undertone([...args, '--wait'], { env });
    assert.equal(code, 0, stderr);
    const [left, right, legend = ''] = stdout.trimEnd().split('\n').slice(-3);
    assert.match(left ?? '', /^0 [AHNS·]{4}$/);
    assert.equal(right, '1 ____');
    assert.match(legend, /_ no speech 50 %/);
    const csv = (await undertone([...args, '--csv'], { env })).stdout.trimEnd().split('\n');
    const silent = csv.map((line) => line.split(',')).filter(([, , , , , channel]) => channel === '1');
    assert.deepEqual(
      silent.map(([, , emotion]) => emotion),
      Array(4).fill('no speech'),
    );
    const srt = (await undertone([...args, '--srt'], { env })).stdout;
    assert(srt.includes('channel 1: no speech\n'), srt);
  });

  test('list shows uploads with their labels, newest first', async () => {
    const { stdout: id } = await undertone(['upload', talk, '--label', 'call 7'], { env });
    const { code, stdout } = await undertone(['list', '--limit', '1'], { env });
    assert.equal(code, 0);
    assert.match(stdout, /^ID +STATUS +LENGTH +CREATED +LABEL\n/);
    assert.match(stdout, new RegExp(`^${id.trim()} .* call 7$`, 'm'));
    const json = JSON.parse((await undertone(['list', '--json'], { env })).stdout);
    assert.equal(json.requests[0].request_id, id.trim());
    assert.equal(json.requests[0].label, 'call 7');
    assert.equal((await undertone(['list', '--status', 'done'], { env })).code, 2);
  });

  test('webhooks test sends an event that a Standard Webhooks library verifies', async () => {
    const secret = (await undertone(['webhooks', 'secret'], { env })).stdout.trim();
    const events: unknown[] = [];
    let status = 204;
    const receiver = createServer(async (request, response) => {
      events.push(new Webhook(secret).verify(await text(request), request.headers as Record<string, string>));
      response.writeHead(status).end();
    }).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const delivered = await undertone(['webhooks', 'test', url], { env });
    assert.deepEqual([delivered.code, delivered.stderr], [0, '']);
    assert.match(delivered.stdout, /^Delivered: http:.*\/hook answered 204 in \d+ ms\.\n$/);
    assert.equal((events[0] as { type: string }).type, 'webhook.test');
    status = 302;
    const refused = await undertone(['webhooks', 'test', url], { env });
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /answered 302 in .* 2xx means delivered/);
    receiver.close();
    const unreachable = await undertone(['webhooks', 'test', url], { env });
    assert.match(unreachable.stderr, /cannot be reached/);
  });

  test('a folder gives the rows of all files, the failures, a table, and exit code 3', async () => {
    const calls = join(folder, 'calls');
    await mkdir(join(calls, 'monday'), { recursive: true });
    await writeFile(join(calls, 'a.wav'), talkWav(12));
    await writeFile(join(calls, 'monday', 'b.wav'), talkWav(7));
    await writeFile(join(calls, 'short.wav'), silentWav(2));
    await writeFile(join(calls, 'notes.txt'), 'no recording');
    const output = join(folder, 'calls.csv');
    const first = await undertone(['upload', calls, '--output', output], { env });
    assert.equal(first.code, 3, first.stderr);
    assert.match(first.stderr, /short\.wav: .*5 s/);
    assert.match(first.stdout, /^2 of 3 files, 1 failed\n(.*\d steps? +\d+ % .*\n)+$/);
    const rows = (await readFile(output, 'utf8')).trimEnd().split('\n');
    assert.match(rows[0] ?? '', /^file,request_id,t,seconds,emotion,confidence,/);
    assert.deepEqual(
      rows
        .slice(1)
        .map((row) => row.split(',')[0]?.slice(calls.length))
        .sort(),
      ['/a.wav', '/a.wav', '/a.wav', '/monday/b.wav', '/monday/b.wav'],
    );
    await rm(join(calls, 'short.wav'));
    const again = await undertone(['upload', calls, '--output', output, '--resume'], { env });
    assert.deepEqual([again.code, again.stdout], [0, 'Nothing to do: 2 files done before.\n']);
    const ids = await undertone(['upload', calls], { env });
    assert.equal(ids.code, 0);
    assert.equal(ids.stdout.trimEnd().split('\n').length, 2);
    for (const line of ids.stdout.trimEnd().split('\n')) assert.match(line.split('\t')[0] ?? '', UUID);
  });

  test('FORCE_COLOR colours the strip', async () => {
    const forced = await undertone(['upload', talk, '--wait'], { env: { ...env, FORCE_COLOR: '1' } });
    assert.match(forced.stdout.trimEnd().split('\n').at(-2) ?? '', /\[3\dm█.\[39m/);
  });

  test('upload prints the request ID, result the timeline, and delete deletes both', async () => {
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

  test('--csv, --srt and --json agree, and use the given model and interval', async () => {
    const args = ['upload', talk, '--model', '7emotions', '--interval', '10'];
    const csv = (await undertone([...args, '--csv'], { env })).stdout.trimEnd().split('\n');
    assert.match(
      csv[0] ?? '',
      /^t,seconds,emotion,confidence,end,channel,speech_seconds,speech,angry,.*disgusted$/,
    );
    assert.deepEqual(
      csv.slice(1).map((line) => line.split(',').slice(0, 2).join()),
      ['00:00,0', '00:10,10', '00:20,20', '00:30,30'],
    );
    const srt = (await undertone([...args, '--srt'], { env })).stdout;
    const [, , emotion, confidence] = csv[2]?.split(',') ?? [];
    const unsure = Number(confidence) < ADVISED_MIN_CONFIDENCE ? ' (unsure)' : '';
    const rest = emotion === 'no speech' ? '' : ` ${Math.round(Number(confidence) * 100)} %${unsure}`;
    assert(srt.includes(`2\n00:00:10,000 --> 00:00:20,000\n${emotion}${rest}\n`), srt);
    const json = JSON.parse((await undertone([...args, '--json'], { env })).stdout);
    assert.deepEqual(
      json.emotions.map((step: DetailedElement) =>
        [
          step.t,
          step.start,
          step.confidence,
          step.end,
          step.speech_seconds,
          ...Object.values(step.all_predictions),
        ].join(),
      ),
      csv.slice(1).map((line) =>
        line
          .split(',')
          .filter((_, column) => ![2, 5, 7].includes(column))
          .join(),
      ),
    );
  });

  test('upload reads standard input', async () => {
    const { code, stdout } = await undertone(['upload', '-', '--csv'], { env, input: talkWav(6) });
    assert.equal(code, 0);
    assert.equal(stdout.trimEnd().split('\n').length, 3);
  });

  test('a failure prints one sentence and exits with 1', async () => {
    const short = join(folder, 'short.wav');
    await writeFile(short, silentWav(2));
    const wrongs: [string[], Record<string, string>, RegExp][] = [
      [['upload', join(folder, 'missing.wav')], env, /missing\.wav cannot be read: there is no such file/],
      [['upload', short, '--wait'], env, /5 s/],
      [['upload', talk], { ...env, SERVICE_API_KEY: '' }, /set SERVICE_API_KEY/],
      [['upload', talk], { ...env, SERVICE_API_KEY: 'another' }, /key/],
      [['delete', '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10'], env, /request/],
    ];
    for (const [args, variables, says] of wrongs) {
      const { code, stdout, stderr } = await undertone(args, { env: variables });
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, says);
      assert.doesNotMatch(stderr, /\n {4}at /, 'no stack');
    }
  });

  test('an invalid command line or setting exits with 2', async () => {
    const wrongs: [string[], Record<string, string>, RegExp][] = [
      [['--interval', '0.5'], {}, /--interval/],
      [['--json', '--csv'], {}, /--json/],
      [['--model', '6emotions'], {}, /6emotions/],
      [['--url', 'nowhere'], {}, /--url <url>.* begins with http/],
      [[], { SERVICE_URL: 'nowhere' }, /SERVICE_URL.* begins with http/],
      [[], { SERVICE_ASYNCH_URL: 'nowhere' }, /undertone: SERVICE_ASYNCH_URL is not a URL/],
      [['--webhook', 'nowhere'], {}, /--webhook <url>.* begins with http/],
      [['--label', ''], {}, /--label <text>.*1 to 100 characters/],
      [[], { SERVICE_URL: '', SERVICE_PORT: 'http' }, /SERVICE_PORT must be/],
    ];
    for (const [args, variables, says] of wrongs) {
      const { code, stderr } = await undertone(['upload', talk, ...args], { env: { ...env, ...variables } });
      assert.equal(code, 2, stderr);
      assert.match(stderr, says);
    }
  });

  test('--url, SERVICE_URL and SERVICE_PORT set the server, and SERVICE_ASYNCH_URL overrides them', async () => {
    const unknown = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';
    const { port } = new URL(server.url);
    // Nothing listens on this port, or on port 1.
    const unused = `http://127.0.0.1:${await freePort()}`;
    const asynch = `${server.url}/v1/asynch`;
    const found: [string[], Record<string, string>][] = [
      [[], { SERVICE_URL: server.url }],
      [[], { SERVICE_PORT: port }],
      [[], { SERVICE_URL: `${server.url}/`, SERVICE_PORT: '1' }],
      [['--url', server.url], { SERVICE_URL: unused, SERVICE_PORT: '1' }],
      [[], { SERVICE_URL: unused, SERVICE_ASYNCH_URL: asynch }],
    ];
    for (const [args, variables] of found) {
      const answer = await undertone(['delete', unknown, ...args], {
        env: { SERVICE_API_KEY: KEY, ...variables },
      });
      assert.equal(answer.code, 1);
      assert.match(answer.stderr, /No request has this/, JSON.stringify([args, variables]));
    }
    const lost = await undertone(['delete', unknown, '--url', unused], { env });
    assert.match(
      lost.stderr,
      /^undertone: No server is running at http:\/\/127\.0\.0\.1:\d+\. Start one with `undertone serve`, or set SERVICE_URL [^.]*\.$/m,
    );
    const both = await undertone(['delete', unknown, '--url', unused], {
      env: { ...env, SERVICE_ASYNCH_URL: asynch },
    });
    assert.match(both.stderr, /SERVICE_ASYNCH_URL overrides --url/);
    assert.match(both.stderr, /No request has this/);
  });

  test('an unfinished result prints its status; Ctrl-C stops --wait and says how to continue', async () => {
    const response = await fetch(`${server.url}/v1/asynch/upload/initiate?file_name=talk.wav&part_count=1`, {
      headers: { [API_KEY_HEADER]: KEY },
    });
    const { request_id: id } = (await response.json()) as { request_id: string };
    const answer = await undertone(['result', id], { env });
    assert.deepEqual([answer.code, answer.stdout], [1, '']);
    assert.equal(answer.stderr, 'undertone: Not finished yet: uploading. Add --wait to wait for it.\n');
    const child = start(['result', id, '--wait'], { env, nodeArgs: ['--import', TERMINAL] });
    child.stderr?.once('data', () => child.kill('SIGINT'));
    const [stderr, ended] = await Promise.all([output(child.stderr), once(child, 'close')]);
    assert.deepEqual(ended, [null, 'SIGINT']);
    assert.ok(stderr.includes(`Stopped waiting. The request continues: \`undertone result ${id} --wait\`.`));
  });

  test('after Ctrl-C during the wait the server finishes the request', async () => {
    const long = join(folder, 'long.wav');
    await writeFile(long, talkWav(300));
    const child = start(['upload', long, '--wait'], { env, nodeArgs: ['--import', TERMINAL] });
    child.stderr?.on('data', (piece: Buffer) => {
      if (/Classifying|Waiting/.test(piece.toString())) child.kill('SIGINT');
    });
    const [stderr, ended] = await Promise.all([output(child.stderr), once(child, 'close')]);
    assert.deepEqual(ended, [null, 'SIGINT']);
    const [, id = ''] = /Stopped waiting.*`undertone result (\S+) --wait`/.exec(stderr) ?? [];
    assert.match(id, UUID);
    const { stdout } = await undertone(['result', id, '--wait', '--csv'], { env });
    assert.equal(stdout.trimEnd().split('\n').length, 61);
  });
});
