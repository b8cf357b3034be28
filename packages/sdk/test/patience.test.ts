import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stall } from '../src/asynch/stall.ts';
import { Failure } from '../src/failure.ts';
import { Transport } from '../src/http/transport.ts';
import { Log } from '../src/log.ts';
import { nodePlatform } from '../src/platform/node.ts';
import { sleep } from '../src/platform/sleep.ts';
import { flakyServer, MIB } from './support/clients.ts';
import { run } from './support/packed.ts';

test('a part that has not moved for two minutes is given up, one that moves is not', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stall = new Stall();
  for (let minute = 0; minute < 10; minute++) {
    t.mock.timers.tick(60_000);
    stall.moved();
  }
  assert.equal(stall.signal.aborted, false);
  t.mock.timers.tick(120_000);
  assert.equal(stall.signal.aborted, true);
});

test('a part that is over is watched no longer, even when its connection still reads', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stall = new Stall();
  stall.over();
  stall.moved();
  t.mock.timers.tick(1_000_000);
  assert.equal(stall.signal.aborted, false);
});

test('a call without an answer in time is cut off, and worth another try', async (t) => {
  const server = await flakyServer(t);
  server.faults = () => ({ kind: 'slow', milliseconds: 10_000 });
  const transport = new Transport(undefined, new Log(nodePlatform, 'error'));
  const call = transport.send({
    method: 'GET',
    url: `${server.origin}/v1/models`,
    deadline: AbortSignal.timeout(50),
  });
  await assert.rejects(call, (error) => {
    assert(error instanceof Failure && error.retryable);
    assert.equal(error.details.code, 'timed_out');
    assert.match(error.message, /no answer in time/);
    return true;
  });
});

test('a wait ends at once when it is aborted, and leaves no listener behind when it is not', async () => {
  const aborter = new AbortController();
  const waiting = sleep(60_000, aborter.signal);
  aborter.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(sleep(60_000, aborter.signal), /enough/);
  await sleep(1, new AbortController().signal);
});

test('memory does not grow with the file: six times the bytes, the same peak', async (t) => {
  const server = await flakyServer(t);
  const peak = async (kind: string, bytes: number) => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', MEASURE], {
      env: { ...process.env, SETTINGS: JSON.stringify(server.settings), KIND: kind, BYTES: String(bytes) },
    });
    server.uploads.clear();
    server.seen.length = 0;
    return Number(stdout);
  };
  for (const kind of ['path', 'stream']) {
    const [small, large] = [await peak(kind, 16 * MIB), await peak(kind, 96 * MIB)];
    assert(large - small < 20, `${kind}: ${small} MiB for the small file, ${large} MiB for the large one`);
    assert(large < 150, `${kind}: ${large} MiB`);
  }
});

const MEASURE = `
  import { createReadStream } from 'node:fs';
  import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
  import { tmpdir } from 'node:os';
  import { EmotionClient } from '${new URL('../src/index.ts', import.meta.url).href}';
  const folder = await mkdtemp(tmpdir() + '/undertone-memory-');
  const path = folder + '/talk.wav';
  await writeFile(path, '');
  await truncate(path, Number(process.env.BYTES));
  let peak = 0;
  const sampling = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5);
  const client = new EmotionClient(JSON.parse(process.env.SETTINGS));
  await client.asynch.upload(process.env.KIND === 'path' ? path : createReadStream(path));
  await rm(folder, { recursive: true });
  clearInterval(sampling);
  process.stdout.write(String(Math.round(peak / 1024 ** 2)));
`;
