// A process of clients, started by run.ts. Each client posts in a loop; after a 503 or 429 it waits for Retry-After. Prints the
// results as JSON.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from '../support/client.ts';
import { median } from '../support/report.ts';
import { clipForm } from '../support/voice.ts';
import { largestForm } from './largest.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    key: { type: 'string', default: '' },
    clients: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '5' },
    /** Each client posts the largest allowed body once, all at the same time. */
    largest: { type: 'boolean', default: false },
    chunked: { type: 'boolean', default: false },
  },
});
const { url, key, chunked, largest } = values;
const connections = Number(values.clients);
const body = largest ? largestForm() : clipForm();
const client = new Client({ url, key }, { body, connections, chunked });

/** All clients start at once, so the first answers do not count. */
const WARM_UP_SECONDS = 3;
const seconds = Number(values.seconds);
const start = performance.now() + WARM_UP_SECONDS * 1000;
const end = start + seconds * 1000;
const statuses: Record<string, number> = {};
const okMs: number[] = [];
let okInTime = 0;
let slowestMs = 0;

async function postOnce(): Promise<void> {
  const answer = await client.post().catch((error: NodeJS.ErrnoException) => {
    count(error.code ?? error.message);
    return null;
  });
  if (answer === null) return;
  count(String(answer.status));
  slowestMs = Math.max(slowestMs, answer.ms);
  if (answer.status === 200) {
    okMs.push(answer.ms);
    if (performance.now() >= start && performance.now() < end) okInTime++;
  } else if (!largest) {
    // With jitter, so that the refused clients do not all retry at once.
    await sleep(answer.retryAfterSeconds * 1000 * (1 + Math.random()));
  }
}

async function postUntilEnd(): Promise<void> {
  while (performance.now() < end) await postOnce();
}

function count(outcome: string): void {
  statuses[outcome] = (statuses[outcome] ?? 0) + 1;
}

await Promise.all(Array.from({ length: connections }, largest ? postOnce : postUntilEnd));
await client.close();
console.log(JSON.stringify({ perSecond: okInTime / seconds, medianMs: median(okMs), slowestMs, statuses }));
