// Sends many damaged or hostile bodies to the real server. See ../README.md.
import { parseArgs } from 'node:util';
import { hostileRequest } from '@undertone/testing/hostile';
import { Random } from '@undertone/testing/random';
import { sendHostile } from '@undertone/testing/send-hostile';
import { Client } from '../support/client.ts';
import { describeMachine } from '../support/report.ts';
import { startServerProcess } from '../support/server-process.ts';
import { clipForm } from '../support/voice.ts';

const AT_ONCE = 16;
/** What the heap and the allocator may still gain between the middle and the end without being called a leak. */
const GROWTH_MEGABYTES = 60;

const { values } = parseArgs({
  options: { count: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } },
});
const count = Number(values.count);
const random = new Random(Number(values.seed));
const byKind = new Map<string, Record<string, number>>();
const failures: string[] = [];
let turn = 0;
let middleMegabytes = 0;

const server = await startServerProcess();
const port = Number(new URL(server.url).port);

async function work(): Promise<void> {
  while (turn < count) {
    if (turn === Math.floor(count / 2)) middleMegabytes = await server.residentMegabytes();
    const request = hostileRequest(random, turn++);
    const answer = await sendHostile(port, server.key, request).catch((error: Error) => error);
    const outcome =
      answer === null ? 'hung up' : answer instanceof Error ? 'no answer' : String(answer.status);
    const outcomes = byKind.get(request.kind) ?? {};
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    byKind.set(request.kind, outcomes);
    if (answer instanceof Error) failures.push(`${request.kind}: ${answer.message}`);
    else if (answer && answer.status >= 500)
      failures.push(`${request.kind}: ${answer.status} ${answer.body}`);
  }
}

try {
  const start = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const seconds = (performance.now() - start) / 1000;
  const endMegabytes = await server.residentMegabytes();
  const client = new Client({ url: server.url, key: server.key, body: clipForm(), connections: 1 });
  const { status } = await client.post();
  client.close();
  if (status !== 200) failures.push(`afterwards a good clip gets ${status}`);
  if ((await server.metric('undertone_discrete_requests_in_flight')) !== 0)
    failures.push('requests are left in flight');
  if ((await server.metric('undertone_inference_thread_restarts')) !== 0)
    failures.push('an inference thread was lost');
  if (endMegabytes - middleMegabytes > GROWTH_MEGABYTES) failures.push('memory goes on growing');
  console.log(`\n${describeMachine()}\n${count} bodies in ${seconds.toFixed(0)} s\n`);
  console.table(Object.fromEntries(byKind));
  console.log(
    JSON.stringify({
      machine: describeMachine(),
      count,
      seconds,
      middleMegabytes,
      endMegabytes,
      failures: failures.length,
    }),
  );
  for (const failure of failures.slice(0, 20)) console.error(`MISSED: ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
} finally {
  await server.stop();
}
