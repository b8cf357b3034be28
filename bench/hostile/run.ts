// Sends many damaged or hostile bodies to the real server. See ../README.md.
import { parseArgs } from 'node:util';
import { hostileRequest } from '@undertone/testing/hostile';
import { Random } from '@undertone/testing/random';
import { sendHostile } from '@undertone/testing/send-hostile';
import { startServerProcess } from '@undertone/testing/server-process';
import { Client } from '../support/client.ts';
import { describeMachine, Limits, rounded } from '../support/report.ts';
import { clipForm } from '../support/voice.ts';

const CONCURRENCY = 16;
/** Heap and allocator noise in the second half; more than this is a leak. */
const GROWTH_MEGABYTES = 60;

const { values } = parseArgs({
  options: { count: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } },
});
const count = Number(values.count);
const random = new Random(Number(values.seed));
const byKind = new Map<string, Record<string, number>>();
const limits = new Limits();
let turn = 0;
let middleMegabytes = 0;

console.log(`${describeMachine()}\n`);
const server = await startServerProcess();
const port = Number(new URL(server.url).port);

async function work(): Promise<void> {
  while (turn < count) {
    if (turn === Math.floor(count / 2)) middleMegabytes = await server.residentMegabytes();
    const request = hostileRequest(random, turn++);
    const answer = await sendHostile(port, server.key, request).catch((error: Error) => error);
    const outcome =
      answer === null ? 'disconnected' : answer instanceof Error ? 'no answer' : String(answer.status);
    const outcomes = byKind.get(request.kind) ?? {};
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    byKind.set(request.kind, outcomes);
    if (answer instanceof Error) limits.miss(`${request.kind}: ${answer.message}`);
    else if (answer && answer.status >= 500) limits.miss(`${request.kind}: ${answer.status} ${answer.body}`);
  }
}

try {
  const start = performance.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  const seconds = (performance.now() - start) / 1000;
  const growth = (await server.residentMegabytes()) - middleMegabytes;
  const client = new Client(server, { body: clipForm() });
  const { status } = await client.post();
  await client.close();
  if (status !== 200) limits.miss(`afterwards a valid recording gets ${status}`);
  limits.atMost('requests in flight', await server.metric('undertone_discrete_requests_in_flight'), 0);
  limits.atMost('inference threads lost', await server.metric('undertone_inference_thread_restarts'), 0);
  limits.atMost('memory growth in the second half', growth, GROWTH_MEGABYTES, ' MB');
  console.table(Object.fromEntries(byKind));
  console.log(`${count} bodies in ${rounded(seconds)} s; ${rounded(growth)} MB more than at half time.`);
} finally {
  await server.stop();
}
limits.conclude();
