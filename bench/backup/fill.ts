import { setTimeout as sleep } from 'node:timers/promises';
import {
  ASYNCH_PATHS,
  type InitiateResult,
  type PendingResult,
  type WebhookSecret,
} from '@undertone/contract';
import { AsynchClient, putPart, steadily } from '@undertone/testing/asynch-client';
import { longWav, wav } from '@undertone/testing/wav';
import { longSilence } from '../support/long-silence.ts';
import { type Place, serverAt } from './place.ts';

export const PENDING_WEBHOOKS = 40;
const UPLOADS_AT_ONCE = 4;
export const SHORT = wav({ seconds: 6, rate: 16_000 });
const PARTS = 3;
/** Takes long enough to be running while the backup is made. */
const LONG_SECONDS = 900;

/** What a caller sees of a request. */
export interface View {
  readonly status: number;
  readonly body: unknown;
}

/** A service with requests in every state. Its server is running, and nobody receives its webhooks. */
export interface Filled {
  readonly server: ReturnType<typeof serverAt>;
  readonly key: string;
  /** Of its webhooks. */
  readonly secret: string;
  /** Requests that are over, as they were seen before the backup. */
  readonly over: ReadonlyMap<string, View>;
  /** Has all parts but the last. */
  readonly uploading: string;
  /** One that is processing, and those queued behind it. */
  readonly waiting: readonly string[];
}

export async function fill(place: Place, key: string, webhook_url: string): Promise<Filled> {
  const server = serverAt(place);
  await server.start();
  const client = new AsynchClient(server.url, key);
  const [expired, deleted] = [await client.upload(SHORT), await client.upload(SHORT)];
  for (const id of [expired, deleted]) await client.result(id);
  await client.delete(deleted);
  await place.expire(expired);
  // The sweep runs at the start.
  await server.end('SIGTERM');
  await server.start();

  const files = Array.from(
    { length: PENDING_WEBHOOKS - 2 },
    () => () => client.upload(SHORT, 1, { webhook_url }),
  );
  const silence = await longSilence(3_600);
  files.push(
    () => client.upload(SHORT.subarray(0, 20), 1, { webhook_url }), // ends within its header
    // Its result is stored in chunks.
    () => client.upload(silence, 1, { webhook_url, interval: 1, channels: 'separate' }),
  );
  const finished = await inTurns(files);
  for (const id of finished) await (await client.settled(id)).body?.cancel();

  const uploading = await beginUpload(client);
  const running = await client.upload(longWav(LONG_SECONDS), 1, { webhook_url });
  const queued = [
    await client.upload(SHORT, 1, { webhook_url }),
    await client.upload(SHORT, 1, { webhook_url }),
  ];
  const over = new Map<string, View>();
  for (const id of [expired, deleted, ...finished]) over.set(id, await viewOf(client, id));
  while ((await pendingState(client, running)) === 'queued') await sleep(50);
  const answer = await client.call(ASYNCH_PATHS.webhookSecret);
  const { secret } = (await answer.json()) as WebhookSecret;
  return { server, key, secret, over, uploading, waiting: [running, ...queued] };
}

async function inTurns(files: (() => Promise<string>)[]): Promise<string[]> {
  const ids: string[] = [];
  const next = files.values();
  await Promise.all(
    Array.from({ length: UPLOADS_AT_ONCE }, async () => {
      for (const upload of next) ids.push(await upload());
    }),
  );
  return ids;
}

async function beginUpload(client: AsynchClient): Promise<string> {
  const begun = (await (await client.initiate({ part_count: PARTS })).json()) as InitiateResult;
  for (const { part_number, url } of begun.presigned_urls.slice(0, -1)) {
    const { status } = await putPart(url, partOf(part_number));
    if (status !== 200) throw new Error(`a part got ${status}`);
  }
  return begun.request_id;
}

export function partOf(number: number): Uint8Array {
  const size = Math.ceil(SHORT.length / PARTS);
  return SHORT.subarray((number - 1) * size, number * size);
}

/** Everything that must not change. Of an error, its own id does. */
export async function viewOf(client: AsynchClient, id: string): Promise<View> {
  const answer = await steadily(() =>
    client.call(`${ASYNCH_PATHS.prediction}?request_id=${id}&details=true`),
  );
  const body = (await answer.json()) as Record<string, unknown>;
  if (!answer.ok) delete body['request_id'];
  return { status: answer.status, body };
}

async function pendingState(client: AsynchClient, id: string): Promise<string> {
  return ((await (await client.prediction(id)).json()) as PendingResult).status;
}
