import { setTimeout as sleep } from 'node:timers/promises';
import {
  API_KEY_HEADER,
  ASYNCH_PATHS,
  type AsynchResult,
  type InitiateResult,
  PATHS,
} from '@undertone/contract';
import type { Recording } from './recording.ts';

const PART_BYTES = 5 * 2 ** 20;
const CONCURRENCY = 3;
const POLL_MS = 250;

interface Server {
  readonly url: string;
  readonly key: string;
}

/** Initiates, sends every part and completes. */
export async function upload({ url, key }: Server, recording: Recording, more = ''): Promise<string> {
  const headers = { [API_KEY_HEADER]: key };
  const base = url + PATHS.asynch;
  const count = Math.ceil(recording.bytes / PART_BYTES);
  const query = `?file_name=bench.wav&part_count=${count}${more}`;
  const begun = (await answered(
    await fetch(base + ASYNCH_PATHS.initiate + query, { method: 'POST', headers }),
  )) as InitiateResult;
  const parts: { PartNumber: number; ETag: string }[] = [];
  const waiting = begun.presigned_urls.values();
  async function send(): Promise<void> {
    for (const { part_number, url: address } of waiting) {
      const body = recording.slice((part_number - 1) * PART_BYTES, part_number * PART_BYTES);
      const response = await fetch(address, { method: 'PUT', body });
      if (!response.ok) throw new Error(await response.text());
      parts.push({ PartNumber: part_number, ETag: response.headers.get('etag') ?? '' });
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, send));
  const { request_id, upload_id } = begun;
  await answered(
    await fetch(base + ASYNCH_PATHS.complete, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ request_id, upload_id, parts }),
    }),
  );
  return request_id;
}

/** Polls as our clients do, and retries a 503. */
export async function result({ url, key }: Server, requestId: string): Promise<AsynchResult> {
  const address = `${url}${PATHS.asynch}${ASYNCH_PATHS.prediction}?request_id=${requestId}`;
  for (;;) {
    const response = await fetch(address, { headers: { [API_KEY_HEADER]: key } });
    if (response.status !== 202 && response.status !== 503) return (await answered(response)) as AsynchResult;
    await response.arrayBuffer();
    await sleep(response.status === 503 ? 1_000 : POLL_MS);
  }
}

async function answered(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
