// Uploads to a service that fails again and again. The client never resends a part that was acknowledged.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ASYNCH_PATHS,
  type AsynchResult,
  type InitiateResult,
  type WebhookEvent,
  type WebhookSecret,
} from '@undertone/contract';
import { AsynchClient, filesOf, putPart } from './asynch-client.ts';
import type { Random } from './random.ts';
import type { ServerProcess } from './server-process.ts';
import { verifyAll } from './verify-webhook.ts';
import { wav } from './wav.ts';
import type { Receiver } from './webhook-receiver.ts';

/** The service under test, and the ways in which it fails. */
export interface Victim {
  readonly key: string;
  /** Its address now. */
  readonly url: string;
  start(): Promise<void>;
  /** Breaks something and repairs it. Returns its name. */
  fail(random: Random): Promise<string>;
  /** Recordings still stored. */
  left(): Promise<string[]>;
  end(): Promise<void>;
}

/** One server, killed with SIGKILL. */
export function killed(server: ServerProcess): Victim {
  return {
    key: server.key,
    get url() {
      return server.url;
    },
    start: () => server.start(),
    fail: async () => {
      await server.end('SIGKILL');
      await server.start();
      return 'server';
    },
    left: () => filesOf(server.dataDir),
    end: () => server.end('SIGKILL'),
  };
}

const MOMENTS = ['upload', 'completion', 'processing'] as const;
type Moment = (typeof MOMENTS)[number];

interface CrashReport {
  uploads: number;
  moments: Record<Moment, number>;
  faults: Record<string, number>;
  identical: number;
}

interface Plan {
  file: number;
  moment: Moment;
  delayMs: number;
}

const FILES = [
  { seconds: 34.2, tone: 170 },
  { seconds: 61, tone: 240 },
  { seconds: 90.05, tone: 120 },
];
const PART_BYTES = 300_000;
/** The third attempt comes 35 s after the first, and a crash during an attempt delays the next one by half a minute. */
const NOTIFIED_WITHIN_MS = 4 * 60_000;

interface Options {
  readonly say?: (line: string) => void;
  /** Gets a webhook for every upload. */
  readonly receiver?: Receiver;
}

/**
 * One upload for each fault. Every upload must end with the result of an undisturbed run and every webhook must arrive; no
 * recording may be left behind.
 */
export async function surviveFaults(
  victim: Victim,
  faults: number,
  random: Random,
  { say = () => undefined, receiver }: Options = {},
): Promise<CrashReport> {
  const files = FILES.map(({ seconds, tone }) =>
    wav({
      seconds,
      rate: 16_000,
      sound: (t) => 0.4 * Math.sin(2 * Math.PI * tone * t + 9 * Math.sin(t)) * Math.sin(7 * t),
    }),
  );
  const report: CrashReport = {
    uploads: 0,
    moments: { upload: 0, completion: 0, processing: 0 },
    faults: {},
    identical: 0,
  };
  await victim.start();
  try {
    const expected: AsynchResult['emotions'][] = [];
    const undisturbed = new AsynchClient(victim.url, victim.key);
    for (const file of files) {
      expected.push((await undisturbed.result(await undisturbed.upload(file, 3))).emotions);
    }
    const ids: string[] = [];
    for (let i = 0; i < faults; i++) {
      const moment = MOMENTS[i % MOMENTS.length] as Moment;
      const plan: Plan = {
        file: random.integer(0, files.length - 1),
        moment,
        delayMs: random.integer(0, { upload: 25, completion: 12, processing: 900 }[moment]),
      };
      const query = receiver && { webhook_url: receiver.url };
      const outcome = await uploadAndFail(victim, files[plan.file] as Buffer, plan, random, query);
      const { id, emotions, broken } = outcome;
      ids.push(id);
      say(`${i + 1}: ${broken} during ${moment}, after ${plan.delayMs} ms`);
      if (same(emotions, expected[plan.file] ?? [])) report.identical++;
      report.uploads++;
      report.moments[moment]++;
      report.faults[broken] = (report.faults[broken] ?? 0) + 1;
    }
    await nothingLeft(victim);
    if (receiver) await allNotified(receiver, ids, victim);
    return report;
  } finally {
    await victim.end();
  }
}

async function uploadAndFail(
  victim: Victim,
  file: Buffer,
  { moment, delayMs }: Plan,
  random: Random,
  query: Record<string, string> = {},
): Promise<{ id: string; emotions: AsynchResult['emotions']; broken: string }> {
  const client = () => new AsynchClient(victim.url, victim.key);
  const partCount = Math.ceil(file.length / PART_BYTES);
  const initiated = await client().initiate({ part_count: partCount, ...query });
  const begun = (await initiated.json()) as InitiateResult;
  let failing: Promise<string> | undefined;
  function failSoon(): void {
    failing ??= sleep(delayMs).then(() => victim.fail(random));
  }
  /** Retries while the server is down or busy. */
  async function retryUntilAnswered(call: () => Promise<Response>): Promise<Response> {
    for (;;) {
      const response = await call().catch(() => null);
      if (response !== null && response.status !== 503) return response;
      await sleep(20);
    }
  }

  const parts: { PartNumber: number; ETag: string }[] = [];
  const failAt = Math.floor(partCount / 2);
  for (const { part_number, url } of begun.presigned_urls) {
    const bytes = file.subarray((part_number - 1) * PART_BYTES, part_number * PART_BYTES);
    if (moment === 'upload' && part_number - 1 === failAt) failSoon();
    const answer = await retryUntilAnswered(() => putPart(url, bytes));
    assert.equal(answer.status, 200);
    parts.push({ PartNumber: part_number, ETag: answer.headers.get('etag') ?? '' });
  }
  await (moment === 'upload' ? failing : undefined);
  if (moment === 'completion') failSoon();
  // Names every part with its acknowledged ETag: a lost part would be a 400.
  const completed = await retryUntilAnswered(() => client().complete({ ...begun, parts }));
  assert.equal(completed.status, 200, await completed.text());
  if (moment === 'processing') failSoon();
  const broken = (await failing) ?? 'nothing';
  const { emotions } = await client().result(begun.request_id);
  return { id: begun.request_id, emotions, broken };
}

function same(actual: AsynchResult['emotions'], expected: AsynchResult['emotions']): boolean {
  const shape = (list: AsynchResult['emotions']) => list.map(({ t, emotion }) => `${t} ${emotion}`);
  assert.deepEqual(shape(actual), shape(expected));
  // The last bits depend on which windows shared a batch, so a rounded confidence may differ by one digit.
  for (const [i, { confidence }] of actual.entries()) {
    assert.ok(Math.abs(confidence - (expected[i]?.confidence ?? 0)) < 0.00011);
  }
  return actual.every(({ confidence }, i) => confidence === expected[i]?.confidence);
}

/** Every request's webhook was accepted, all attempts had the same id, and all signatures are valid. */
async function allNotified(receiver: Receiver, ids: readonly string[], victim: Victim): Promise<void> {
  const requestOf = (body: string) => (JSON.parse(body) as WebhookEvent).data.request_id;
  const attemptsFor = (request: string) =>
    receiver.received.filter(({ body }) => requestOf(body) === request);
  const isNotified = (request: string) => attemptsFor(request).some(({ id }) => receiver.taken.has(id));
  const deadline = performance.now() + NOTIFIED_WITHIN_MS;
  while (!ids.every(isNotified)) {
    assert.ok(
      performance.now() < deadline,
      `${ids.filter((id) => !isNotified(id)).length} webhooks are missing`,
    );
    await sleep(100);
  }
  for (const request of ids) assert.equal(new Set(attemptsFor(request).map(({ id }) => id)).size, 1, request);
  const client = new AsynchClient(victim.url, victim.key);
  const { secret } = (await (await client.call(ASYNCH_PATHS.webhookSecret)).json()) as WebhookSecret;
  await verifyAll(secret, receiver.received);
}

async function nothingLeft(victim: Victim): Promise<void> {
  for (let tries = 0; (await victim.left()).length > 0; tries++) {
    assert.ok(tries < 100, `left behind: ${await victim.left()}`);
    await sleep(100);
  }
}
