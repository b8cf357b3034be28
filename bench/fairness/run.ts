// One key, or nobody's key, takes as much as it can get: the other keys are served as before. See ../README.md.
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { AsynchResult, Problem, WebhookEvent } from '@undertone/contract';
import { openStores } from '@undertone/server';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { killDecoders } from '@undertone/testing/kill-decoders';
import { ServerProcess } from '@undertone/testing/server-process';
import { SharedStores } from '@undertone/testing/shared-stores';
import { longWav } from '@undertone/testing/wav';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { Client } from '../support/client.ts';
import { checkHealth, watchHealth } from '../support/health.ts';
import { longSilence } from '../support/long-silence.ts';
import { describeMachine, Limits, median, percentile, rounded } from '../support/report.ts';
import { clipForm } from '../support/voice.ts';
import { startBusyKey } from './busy-key.ts';
import { WithoutKey } from './without-key.ts';

const LIMITS = {
  timesQuiet: 3,
  /**
   * While the other key keeps every thread busy with short recordings. An inference cannot be interrupted, and a thread kept
   * free for the others would idle most of the time.
   */
  timesQuietAmongClips: 5,
  /** Beyond its own processing time on a quiet server. */
  uploadMs: 5_000,
  webhookMs: 10_000,
  megabytes: 900,
  withoutKeyMegabytes: 700,
  withoutKeyMs: 1_000,
  /** Behind recordings that cannot be read. */
  behindMs: 10_000,
};
const CLIPS_PER_ROUND = 10;
const KILLS = 10;

const { values } = parseArgs({
  options: {
    /** How long the quiet key is measured in each half, while the other one is busy. */
    seconds: { type: 'string', default: '60' },
    /** Sent by the busy key. */
    uploads: { type: 'string', default: '1000' },
    /** Clients of the busy key that send short recordings all the time, in the second half. */
    clients: { type: 'string', default: '16' },
    connections: { type: 'string', default: '2048' },
    frames: { type: 'string', default: '400' },
    /** Give both or neither. */
    postgres: { type: 'boolean', default: false },
    s3: { type: 'boolean', default: false },
  },
});
if (values.postgres !== values.s3) throw new Error('Give --postgres and --s3, or neither.');

const limits = new Limits();
console.log(`${describeMachine()}\n`);
await using opened = new AsyncDisposableStack();
const stores = values.postgres ? await SharedStores.start() : undefined;
opened.defer(async () => stores?.stop());
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-fairness-'));
opened.defer(() => rm(dataDir, { recursive: true, force: true }));
const notifiedAt = new Map<string, number>();
const receiver = await Receiver.start(({ body }) => {
  notifiedAt.set((JSON.parse(body) as WebhookEvent).data.request_id, performance.now());
  return 204;
});
opened.defer(() => receiver.stop());
const server = new ServerProcess(dataDir, { ...stores?.env, SERVICE_WEBHOOK_PRIVATE: 'true' });
await server.start();
// At once: the busy key's recordings would otherwise be waited for.
opened.defer(() => server.end('SIGKILL'));
const quiet = { url: server.url, key: await newKey() };
const asynch = new AsynchClient(quiet.url, quiet.key);
const recording = longWav(8);

// First: what comes after the attacks below is not quiet.
await measure('warm-up', 3);
const before = await measure('quiet', 15);
await decodersDie();
if (stores === undefined) await unreadableAtTheHead();
await withoutKey();
await beside(server.key);
limits.conclude();

async function newKey(): Promise<string> {
  const databaseUrl = stores?.databaseUrl ?? '';
  const opened = await openStores({ dataDir, databaseUrl }, { kind: 'local' });
  try {
    return (await opened.keys.create('quiet')).key;
  } finally {
    await opened.close();
  }
}

/** The decoder is killed in mid-file: the whole recording, or a clear failure. */
async function decodersDie(): Promise<void> {
  const seconds = 3600;
  const file = await longSilence(seconds);
  const killing = killDecoders(server.pid, KILLS);
  const uploads = Array.from({ length: KILLS }, () => asynch.upload(file, 1, { channels: 'separate' }));
  const outcomes: Record<string, number> = {};
  for (const id of await Promise.all(uploads)) {
    const response = await asynch.settled(id, 300_000, 100);
    const body = (await response.json()) as AsynchResult | Problem;
    const steps = 'emotions' in body ? body.emotions.length : 0;
    const outcome = 'emotions' in body ? `${body.status} with ${steps} steps` : body.code;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (response.status !== 422 && steps !== seconds / 5) limits.miss(`the decoder was killed: ${outcome}`);
  }
  await killing;
  console.log(`The decoder was killed ${KILLS} times: ${JSON.stringify(outcomes)}`);
}

/** As many recordings as there are jobs have a part that cannot be read. */
async function unreadableAtTheHead(): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const upload = await asynch.send(recording, 1);
    const files = await readdir(dataDir, { recursive: true });
    const part = join(dataDir, files.find((path) => path.includes(`${upload.request_id}/`)) ?? '');
    await rm(part);
    await symlink('/proc/self/mem', part); // reading its first byte is a real EIO, for root too
    await asynch.complete(upload);
  }
  const { resultMs } = await upload();
  console.log(`Behind two recordings that cannot be read, 8 s are completed after ${rounded(resultMs)} ms.`);
  limits.atMost('a recording behind unreadable ones', resultMs, LIMITS.behindMs, ' ms');
}

async function withoutKey(): Promise<void> {
  await server.peakMegabytes();
  const unauthenticated = new WithoutKey(server.url);
  const times: number[] = [];
  const getIn = async () => {
    const client = new Client(quiet, { body: clipForm() });
    const { status, ms } = await client.post();
    await client.close();
    if (status !== 200) limits.miss(`a known key beside connections without one got ${status}`);
    times.push(ms);
  };
  try {
    await unauthenticated.connect(Number(values.connections));
    await getIn();
    await unauthenticated.sendUnfinishedFrames(Number(values.frames));
    await getIn();
  } finally {
    unauthenticated.close();
  }
  const megabytes = await server.peakMegabytes();
  const [connected, framed] = times.map(rounded);
  console.log(
    `Without a key: ${values.connections} connections, then ${values.frames} unfinished frames; a known key's short recording took ${connected} and ${framed} ms; ${rounded(megabytes)} MB.`,
  );
  limits.atMost('a known key beside connections without one', Math.max(...times), LIMITS.withoutKeyMs, ' ms');
  limits.atMost('memory beside connections without a key', megabytes, LIMITS.withoutKeyMegabytes, ' MB');
}

async function beside(busyKey: string): Promise<void> {
  await server.peakMegabytes();
  const health = watchHealth(server.url);
  const busy = await startBusyKey(server.url, busyKey, values.uploads);
  const seconds = Number(values.seconds);
  const during = await measure('busy', seconds);
  busy.sendClips(values.clients);
  const amongClips = await measure('busy with clips', seconds);
  console.log(`The other key: ${await busy.counts()}`);
  await busy.stop();
  const seen = await health.stop();
  const megabytes = await server.peakMegabytes();
  console.table({ quiet: figures(before), busy: figures(during), 'with clips': figures(amongClips) });
  console.log(`${rounded(megabytes)} MB, /healthz at most ${rounded(seen.slowestMs)} ms.`);
  const times = ({ clipsMs }: Measured) => percentile(clipsMs, 0.99) / percentile(before.clipsMs, 0.99);
  const unit = ' times its quiet time';
  limits.atMost('p99 of short recordings', times(during), LIMITS.timesQuiet, unit);
  limits.atMost('p99 among short recordings', times(amongClips), LIMITS.timesQuietAmongClips, unit);
  const resultsMs = [...during.resultsMs, ...amongClips.resultsMs];
  const webhooksMs = [...during.webhooksMs, ...amongClips.webhooksMs];
  const ownMs = median(before.resultsMs);
  limits.atMost('the slowest upload', Math.max(...resultsMs), LIMITS.uploadMs + ownMs, ' ms');
  limits.atMost('the slowest webhook', Math.max(...webhooksMs), LIMITS.webhookMs, ' ms');
  limits.atMost('memory beside a busy key', megabytes, LIMITS.megabytes, ' MB');
  checkHealth(limits, 'beside a busy key', seen);
}

interface Measured {
  readonly clipsMs: number[];
  readonly resultsMs: number[];
  readonly webhooksMs: number[];
}

/** Short recordings, and now and then an upload. */
async function measure(when: string, seconds: number): Promise<Measured> {
  const measured: Measured = { clipsMs: [], resultsMs: [], webhooksMs: [] };
  const client = new Client(quiet, { body: clipForm() });
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    for (let i = 0; i < CLIPS_PER_ROUND; i++) {
      const { status, ms } = await client.post();
      if (status !== 200) limits.miss(`${when}: a short recording got ${status}`);
      measured.clipsMs.push(ms);
    }
    const { resultMs, webhookMs } = await upload();
    measured.resultsMs.push(resultMs);
    measured.webhooksMs.push(webhookMs);
  }
  await client.close();
  return measured;
}

/** Times from the upload to its result, and from the result to its webhook. */
async function upload(): Promise<{ resultMs: number; webhookMs: number }> {
  const start = performance.now();
  const id = await asynch.upload(recording, 1, { webhook_url: receiver.url });
  const { status } = await asynch.settled(id, 120_000);
  if (status !== 200) limits.miss(`an upload ended with ${status}`);
  const end = performance.now();
  while (!notifiedAt.has(id) && performance.now() < end + 2 * LIMITS.webhookMs) await sleep(10);
  return { resultMs: end - start, webhookMs: Math.max(0, (notifiedAt.get(id) ?? Number.NaN) - end) };
}

function figures({ clipsMs, resultsMs, webhooksMs }: Measured) {
  return {
    clips: clipsMs.length,
    'clip median ms': rounded(median(clipsMs)),
    'clip p99 ms': rounded(percentile(clipsMs, 0.99)),
    uploads: resultsMs.length,
    'upload median ms': rounded(median(resultsMs)),
    'upload slowest ms': rounded(Math.max(...resultsMs)),
    'webhook slowest ms': rounded(Math.max(...webhooksMs)),
  };
}
