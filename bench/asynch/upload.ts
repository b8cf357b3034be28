import assert from 'node:assert/strict';
import type { AsynchResult, InitiateResult } from '@undertone/contract';
import { AsynchClient, putPart, type Upload } from '@undertone/testing/asynch-client';
import type { Recording } from './recording.ts';

const PART_BYTES = 5 * 2 ** 20;
const CONCURRENCY = 3;
const WITHIN_MS = 3_600_000;
/** Rarely, so that polling does not slow the server down. */
const POLL_MS = 250;

interface Server {
  readonly url: string;
  readonly key: string;
}

/** Initiates, sends the parts in parallel and completes. */
export async function upload(
  { url, key }: Server,
  recording: Recording,
  query: Record<string, string> = {},
): Promise<string> {
  const client = new AsynchClient(url, key);
  const part_count = Math.ceil(recording.bytes / PART_BYTES);
  const initiated = await client.initiate({ part_count, ...query });
  assert.equal(initiated.status, 200);
  const begun = (await initiated.json()) as InitiateResult;
  const parts: Upload['parts'] = [];
  const waiting = begun.presigned_urls.values();
  async function send(): Promise<void> {
    for (const { part_number, url: address } of waiting) {
      const body = recording.slice((part_number - 1) * PART_BYTES, part_number * PART_BYTES);
      const response = await putPart(address, body);
      assert.equal(response.status, 200, await response.text());
      parts.push({ PartNumber: part_number, ETag: response.headers.get('etag') ?? '' });
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, send));
  assert.equal((await client.complete({ ...begun, parts })).status, 200);
  return begun.request_id;
}

export async function result({ url, key }: Server, requestId: string): Promise<AsynchResult> {
  const response = await new AsynchClient(url, key).settled(requestId, WITHIN_MS, POLL_MS);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as AsynchResult;
}
