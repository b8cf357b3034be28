// One process of clients: each posts, waits for its answer, and posts again; a 503 or 429 is waited out as it asks.
// Prints what it saw as JSON.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from './client.ts';
import { FORM_TYPE, form, voiceLikeWav } from './clip.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    key: { type: 'string' },
    clients: { type: 'string' },
    seconds: { type: 'string' },
  },
});
const clients = Number(values.clients);
const client = new Client({
  url: values.url ?? '',
  key: values.key ?? '',
  type: FORM_TYPE,
  body: form(voiceLikeWav(5)),
  connections: clients,
});

const statuses: Record<string, number> = {};
const okMs: number[] = [];
/**
 * Answers within the time, which begins when the load is even: at first all clients send at one moment and nobody can
 * be answered yet. The stragglers after it are not answered at full load, and count for nothing else.
 */
let okInTime = 0;
let slowestMs = 0;
const RAMP_SECONDS = 3;
const seconds = Number(values.seconds);
const start = performance.now() + RAMP_SECONDS * 1000;
const end = start + seconds * 1000;

async function work(): Promise<void> {
  while (performance.now() < end) {
    const answer = await client.post().catch((error: NodeJS.ErrnoException) => {
      const name = error.code ?? error.message;
      statuses[name] = (statuses[name] ?? 0) + 1;
      return null;
    });
    if (answer === null) continue;
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    slowestMs = Math.max(slowestMs, answer.ms);
    if (answer.status === 200) {
      okMs.push(answer.ms);
      if (performance.now() >= start && performance.now() < end) okInTime++;
    } else {
      // Jitter, as any decent client has it: otherwise all that were refused come back at one moment.
      await sleep(answer.retryAfterSeconds * 1000 * (1 + Math.random()));
    }
  }
}

await Promise.all(Array.from({ length: clients }, work));
client.close();
okMs.sort((a, b) => a - b);
const at = (share: number) => okMs[Math.min(okMs.length - 1, Math.floor(share * okMs.length))] ?? Number.NaN;
console.log(
  JSON.stringify({
    clients,
    perSecond: okInTime / seconds,
    medianMs: at(0.5),
    p99Ms: at(0.99),
    slowestMs,
    statuses,
  }),
);
