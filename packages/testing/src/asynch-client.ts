import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  API_KEY_HEADER,
  ASYNCH_PATHS,
  type AsynchResult,
  type InitiateResult,
  PATHS,
} from '@undertone/contract';
import { AsynchResult as AsynchResultSchema } from '@undertone/contract/schemas';
import Value from 'typebox/value';
import type { TestApp } from './app.ts';

/** Generous, for slow machines. */
const SETTLED_WITHIN_MS = 300_000;

export interface Upload extends InitiateResult {
  parts: { PartNumber: number; ETag: string }[];
}

/** A client of the asynch interface over real connections. */
export class AsynchClient {
  readonly base: string;
  readonly key: string;

  constructor(url: string, key: string) {
    this.base = url + PATHS.asynch;
    this.key = key;
  }

  static async of(service: TestApp, key = service.key): Promise<AsynchClient> {
    return new AsynchClient((await service.listen()).url, key);
  }

  call(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.base + path, { ...init, headers: { [API_KEY_HEADER]: this.key, ...init.headers } });
  }

  initiate(query: Record<string, string | number>, method = 'POST'): Promise<Response> {
    const search = new URLSearchParams({ file_name: 'voice.wav', part_count: '1' });
    for (const [name, value] of Object.entries(query)) search.set(name, String(value));
    return this.call(`${ASYNCH_PATHS.initiate}?${search}`, { method });
  }

  complete(upload: Pick<Upload, 'request_id' | 'upload_id' | 'parts'>): Promise<Response> {
    const { request_id, upload_id, parts } = upload;
    return this.call(ASYNCH_PATHS.complete, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ request_id, upload_id, parts }),
    });
  }

  prediction(requestId: string): Promise<Response> {
    return this.call(`${ASYNCH_PATHS.prediction}?request_id=${requestId}`);
  }

  delete(requestId: string): Promise<Response> {
    return this.call(`${ASYNCH_PATHS.requests}/${requestId}`, { method: 'DELETE' });
  }

  /** Initiates and sends every part, but does not complete. */
  async send(
    file: Uint8Array,
    partCount: number,
    query: Record<string, string | number> = {},
  ): Promise<Upload> {
    const response = await steadily(() => this.initiate({ part_count: partCount, ...query }));
    assert.equal(response.status, 200);
    const begun = (await response.json()) as InitiateResult;
    const size = Math.ceil(file.length / partCount);
    const parts: Upload['parts'] = [];
    for (const { part_number, url } of begun.presigned_urls) {
      const bytes = file.subarray((part_number - 1) * size, part_number * size);
      const answer = await steadily(() => putPart(url, bytes));
      assert.equal(answer.status, 200, await answer.text());
      parts.push({ PartNumber: part_number, ETag: answer.headers.get('etag') ?? '' });
    }
    return { ...begun, parts };
  }

  /** Initiates, sends every part and completes. */
  async upload(
    file: Uint8Array,
    partCount = 1,
    query: Record<string, string | number> = {},
  ): Promise<string> {
    const upload = await this.send(file, partCount, query);
    assert.equal((await steadily(() => this.complete(upload))).status, 200);
    return upload.request_id;
  }

  /** Polls until the request is no longer pending. */
  async settled(requestId: string, withinMs = SETTLED_WITHIN_MS, pollMs = 25): Promise<Response> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const response = await steadily(() => this.prediction(requestId));
      if (response.status !== 202) return response;
      assert.ok(performance.now() < deadline, `still ${await response.text()}`);
      await sleep(pollMs);
    }
  }

  async result(requestId: string): Promise<AsynchResult> {
    const response = await this.settled(requestId);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const result = JSON.parse(text) as AsynchResult;
    assert.ok(Value.Check(AsynchResultSchema, result), text);
    assert.equal(result.request_id, requestId);
    return result;
  }
}

/** Retries 503s as clients do: on a busy machine the store may be too slow for a moment. */
export async function steadily(call: () => Promise<Response>): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await call();
    if (response.status !== 503 || tries === 20) return response;
    await sleep(250);
  }
}

export function putPart(
  url: string,
  body: Uint8Array | ReadableStream,
  headers: Record<string, string> = {},
): Promise<Response> {
  const init = { method: 'PUT', body, headers, duplex: 'half' };
  return fetch(url, init as RequestInit);
}

/** Every file below a folder, except the database and the secret of the installation. */
export async function filesOf(dataDir: string): Promise<string[]> {
  const entries = await readdir(dataDir, { recursive: true, withFileTypes: true }).catch(async (error) => {
    // A folder was removed while it was being listed.
    if (error.code !== 'ENOENT') throw error;
    return null;
  });
  if (entries === null) return filesOf(dataDir);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(dataDir.length + 1))
    .filter((path) => !/^(undertone\.db(-\w+)?|presign\.key)$/.test(path))
    .sort();
}
