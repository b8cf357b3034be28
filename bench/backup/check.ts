import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { ASYNCH_PATHS, type AsynchResult, type UploadStatus } from '@undertone/contract';
import { webhooks } from '@undertone/sdk';
import { AsynchClient, putPart } from '@undertone/testing/asynch-client';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { type Limits, rounded } from '../support/report.ts';
import { type Filled, partOf, viewOf } from './fill.ts';
import { type Place, serverAt } from './place.ts';

/** The longest wait between the first three attempts is two minutes. */
const DELIVERED_WITHIN_MS = 180_000;
/** Longer than a sender needs to notice that something is due. */
const SECOND_DELIVERY_MS = 3_000;

interface Expected {
  /** Webhooks that were pending. */
  readonly pending: ReadonlySet<string>;
  /** Of recordings that were waiting: their audio is there, or they failed, or they are not there at all. */
  readonly waiting: 'kept' | 'lost' | 'left behind';
  /** Where webhooks go. */
  readonly port: number;
}

/** Starts the service with its new data and its receiver, and compares everything with what was there before. */
export async function check(
  what: string,
  place: Place,
  filled: Filled,
  { pending, waiting, port }: Expected,
  limits: Limits,
): Promise<void> {
  const receiver = await Receiver.start(() => 204, port);
  const server = serverAt(place);
  const start = performance.now();
  try {
    await server.start();
    const client = new AsynchClient(server.url, filled.key);
    const count = pending.size + (waiting === 'left behind' ? 0 : filled.waiting.length);
    const pendingSeconds = untilTaken(() => [...pending].every((id) => receiver.taken.has(id)), start);
    const allSeconds = untilTaken(() => receiver.taken.size >= count, start);
    let same = 0;
    for (const [id, view] of filled.over) {
      const now = await viewOf(client, id);
      if (isDeepStrictEqual(now, view)) same++;
      else limits.miss(`${what}: ${id} was ${view.status}, and is ${now.status}`);
    }
    if (waiting === 'kept') await checkKept(what, client, filled, limits);
    if (waiting === 'lost') await checkLost(what, client, filled, limits);
    if (waiting !== 'left behind') await finishUpload(what, client, filled, limits);

    const [seconds] = await Promise.all([pendingSeconds, allSeconds]);
    await sleep(SECOND_DELIVERY_MS);
    const delivered = [...pending].filter((id) => receiver.taken.has(id)).length;
    let valid = 0;
    for (const { body, headers } of receiver.received) {
      await webhooks.verify(body, headers, filled.secret).then(
        () => valid++,
        (error: Error) => limits.miss(`${what}: ${error.message}`),
      );
    }
    console.log(
      `${what}: ${same} of ${filled.over.size} finished requests as before; ${delivered} of ${pending.size} pending webhooks delivered within ${rounded(seconds)} s of the start, and ${receiver.taken.size - delivered} new ones, in ${receiver.received.length} calls, ${valid} with a valid signature.`,
    );
    limits.atLeast(`${what}: pending webhooks delivered`, delivered, pending.size);
    limits.atLeast(`${what}: webhooks delivered`, receiver.taken.size, count);
    limits.atMost(`${what}: calls to the receiver`, receiver.received.length, count);
  } finally {
    await server.end('SIGTERM');
    await receiver.stop();
  }
}

async function untilTaken(isDone: () => boolean, start: number): Promise<number> {
  while (!isDone() && performance.now() - start < DELIVERED_WITHIN_MS) await sleep(100);
  return (performance.now() - start) / 1000;
}

async function checkKept(
  what: string,
  client: AsynchClient,
  { waiting }: Filled,
  limits: Limits,
): Promise<void> {
  for (const id of waiting) {
    const answer = await client.settled(id);
    if (answer.status !== 200) limits.miss(`${what}: a recording that was waiting got ${answer.status}`);
    await answer.body?.cancel();
  }
}

async function checkLost(
  what: string,
  client: AsynchClient,
  { waiting }: Filled,
  limits: Limits,
): Promise<void> {
  for (const id of waiting) {
    const { status, body } = await viewOf(client, id);
    const named = /restored from a backup .* Send it again/.test(JSON.stringify(body));
    if (!named) limits.miss(`${what}: a recording that was lost got ${status}: ${JSON.stringify(body)}`);
  }
}

/** As a client does that was interrupted: it asks what is missing. */
async function finishUpload(
  what: string,
  client: AsynchClient,
  { uploading }: Filled,
  limits: Limits,
): Promise<void> {
  const ask = async () =>
    (await (await client.call(`${ASYNCH_PATHS.upload}/${uploading}`)).json()) as UploadStatus;
  const { presigned_urls, parts: there, part_count } = await ask();
  for (const { part_number, url } of presigned_urls) await putPart(url, partOf(part_number));
  const { parts, request_id, upload_id } = await ask();
  await client.complete({ request_id, upload_id, parts });
  const answer = await client.settled(uploading);
  const { emotions = [] } = (await answer.json()) as Partial<AsynchResult>;
  if (emotions.length !== 2) limits.miss(`${what}: the unfinished upload got ${answer.status}`);
  console.log(`${what}: the upload had ${there.length} of ${part_count} parts, and was finished.`);
}
