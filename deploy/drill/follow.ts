import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmotionClient } from '@undertone/sdk';
import type { ServerProcess } from '@undertone/testing/server-process';
import { talkWav } from '@undertone/testing/talk';
import { Receiver } from '@undertone/testing/webhook-receiver';
import type { Cluster } from './cluster.ts';

/**
 * One recording through the logs of all processes: uploaded to the API, processed by a worker whose webhook is refused, and
 * announced by another worker after the first one has stopped. Returns that second worker.
 */
export async function followRecording(
  cluster: Cluster,
  apis: readonly ServerProcess[],
): Promise<ServerProcess> {
  const receiver = await Receiver.start((_, attempt) => (attempt === 1 ? 503 : 204));
  const client = new EmotionClient({ apiKey: cluster.key, baseUrl: cluster.proxy.url, showProgress: false });
  const first = await cluster.startWorker();
  const id = await client.asynch.upload(talkWav(10), { webhookUrl: receiver.url });
  await logged(first, id, 'webhook not delivered; retried later');
  await first.end('SIGTERM');
  const second = await cluster.startWorker();
  await logged(second, id, 'webhook delivered');
  await receiver.stop();

  const named = [...apis.map((api, i) => [`api ${i + 1}`, api] as const), ['worker 1', first] as const];
  const lines = [...named, ['worker 2', second] as const].flatMap(([name, process]) =>
    process.linesAbout(id).map((line) => ({ ...line, name, time: String(line['time']) })),
  );
  const inOrder = lines.toSorted((a, b) => a.time.localeCompare(b.time)) as Record<string, unknown>[];
  console.log(`\nRecording ${id} in the logs, by time:`);
  for (const { name, time, msg, route, request_id } of inOrder) {
    console.log(
      `  ${time} ${name}: ${msg === 'answered' ? `answered ${route}` : msg} (request_id ${request_id})`,
    );
  }
  const created = inOrder[0];
  assert.deepEqual([created?.['role'], created?.['msg']], ['api', 'answered']);
  assert.deepEqual(
    inOrder.filter(({ role }) => role === 'worker').map(({ name, msg }) => `${name}: ${msg}`),
    [
      'worker 1: recording claimed',
      'worker 1: recording completed',
      'worker 1: webhook not delivered; retried later',
      'worker 2: webhook delivered',
    ],
  );
  for (const { role, request_id } of inOrder) {
    if (role === 'worker')
      assert.equal(request_id, created?.['request_id'], 'the call that created the recording');
  }
  return second;
}

async function logged(process: ServerProcess, id: string, message: string): Promise<void> {
  while (!process.linesAbout(id).some(({ msg }) => msg === message)) await sleep(50);
}
