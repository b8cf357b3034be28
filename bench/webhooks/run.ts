// Webhooks to a receiver that fails most of the time, with a server that is killed in between. See ../README.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ASYNCH_PATHS, type WebhookEvent, type WebhookSecret } from '@undertone/contract';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { Random } from '@undertone/testing/random';
import { ServerProcess } from '@undertone/testing/server-process';
import { verifyAll } from '@undertone/testing/verify-webhook';
import { wav } from '@undertone/testing/wav';
import { type Reaction, Receiver } from '@undertone/testing/webhook-receiver';
import { describeMachine, Limits } from '../support/report.ts';

const { values } = parseArgs({
  options: { deliveries: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
});
const deliveries = Number(values.deliveries);
/** The third attempt comes 35 s after the first, and a crash puts one off by half a minute. */
const WITHIN_MS = 4 * 60_000;

const random = new Random(Number(values.seed));
const limits = new Limits();
console.log(`${describeMachine()}\n${deliveries} webhooks to a receiver that takes one in two at first\n`);

/** Two of the first three attempts may fail; from the third on all are taken, so that the bench ends. */
const reactions = new Map<Reaction | 'taken', number>();
const receiver = await Receiver.start((_, attempt) => {
  const bad = attempt < 3 && random.integer(0, 1) === 0;
  const reaction: Reaction = bad ? (([500, 'hang', 'reset'] as const)[random.integer(0, 2)] ?? 500) : 204;
  const name = bad ? reaction : 'taken';
  reactions.set(name, (reactions.get(name) ?? 0) + 1);
  return reaction;
});
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-webhooks-'));
const server = new ServerProcess(dataDir, { SERVICE_WEBHOOK_PRIVATE: 'true', SERVICE_LOG_LEVEL: 'info' });
await server.start();
const client = new AsynchClient(server.url, server.key);
try {
  const file = wav({ seconds: 5, rate: 8_000 });
  const ids: string[] = [];
  for (let i = 0; i < deliveries; i++) {
    ids.push(await client.upload(file, 1, { webhook_url: receiver.url, label: `number ${i}` }));
    if (i === Math.floor(deliveries / 2)) {
      await server.end('SIGKILL');
      await server.start();
    }
  }
  // Once more, while webhooks are on their way.
  while (receiver.received.length < deliveries / 2) await sleep(50);
  await server.end('SIGKILL');
  await server.start();
  const requestOf = (body: string) => (JSON.parse(body) as WebhookEvent).data.request_id;
  const told = () => new Set(receiver.received.map(({ body }) => requestOf(body)));
  const deadline = performance.now() + WITHIN_MS;
  while (taken() < deliveries && performance.now() < deadline) await sleep(100);
  const { secret } = (await (await client.call(ASYNCH_PATHS.webhookSecret)).json()) as WebhookSecret;
  await verifyAll(secret, receiver.received);
  const arrived = told();
  const perRequest = Map.groupBy(receiver.received, ({ body }) => requestOf(body));
  const severalIds = [...perRequest.values()].filter((list) => new Set(list.map(({ id }) => id)).size > 1);
  console.log(
    `${receiver.received.length} attempts for ${arrived.size} webhooks: ` +
      [...reactions].map(([reaction, count]) => `${reaction} ${count}`).join(', '),
  );
  limits.atLeast('webhooks that arrived', ids.filter((id) => arrived.has(id)).length, deliveries);
  limits.atLeast('webhooks that were taken', taken(), deliveries);
  limits.atMost('requests whose webhook had more than one id', severalIds.length, 0);
} finally {
  await server.end('SIGTERM');
  await receiver.stop();
  await rm(dataDir, { recursive: true, force: true });
}
limits.conclude();

function taken(): number {
  return receiver.taken.size;
}
