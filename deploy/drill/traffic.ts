import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  API_KEY_HEADER,
  ASYNCH_PATHS,
  type CompleteBody,
  type InitiateResult,
  PATHS,
} from '@undertone/contract';
import { FORM_TYPE, fileForm } from '@undertone/testing/form';
import { VOICES } from '@undertone/testing/paths';
import { talkWav } from '@undertone/testing/talk';

export type Kind = 'short' | 'poll' | 'one call' | 'initiate' | 'complete';

/** A call as its caller saw it. Status 0: no answer. */
export interface Call {
  readonly kind: Kind;
  /** `performance.now()` at its beginning. */
  readonly at: number;
  readonly ms: number;
  readonly status: number;
  readonly code: string;
  readonly retryAfter: string | null;
}

const VOICE = fileForm(readFileSync(join(VOICES, 'happy-1064.wav')));
const RECORDING = talkWav(6);
const ANSWER_WITHIN_MS = 10_000;
const EVERY_MS = { short: 250, poll: 250, oneCall: 1_000, inParts: 1_000 };

/** Callers who never repeat a call and never wait for one another: each second the same calls, whatever is broken. */
export class Traffic {
  readonly calls: Call[] = [];
  /** Recordings that were acknowledged: one call with 202, or complete with 200. */
  readonly acknowledged = new Set<string>();
  /** Recordings whose completion was refused, and when it was asked for. */
  readonly refused = new Map<string, number>();
  readonly #url: string;
  readonly #key: string;
  readonly #query: string;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #running = new Set<Promise<unknown>>();
  /** Uploads whose parts are sent, for `complete` during an outage. */
  readonly #sent: CompleteBody[] = [];
  #finished = '';

  constructor(url: string, key: string, webhookUrl: string) {
    this.#url = url;
    this.#key = key;
    this.#query = new URLSearchParams({ file_name: 'drill.wav', webhook_url: webhookUrl }).toString();
  }

  /** Resolves when everything runs. The polls ask for a recording that is already completed. */
  async start(): Promise<void> {
    const id = (await this.#sendInOneCall()) ?? assert.fail('the first recording was refused');
    while ((await this.#poll(id)).status !== 200) await sleep(100);
    this.#finished = id;
    this.#every(EVERY_MS.short, () => this.#classify());
    this.#every(EVERY_MS.poll, () => this.#poll(this.#finished));
    this.#every(EVERY_MS.oneCall, () => this.#sendInOneCall());
    this.#every(EVERY_MS.inParts, () => this.#sendInParts());
  }

  /** Sends uploads that are to be completed during the next outage of the database. */
  async sendAhead(count: number): Promise<void> {
    for (let i = 0; i < count; i++)
      this.#sent.push((await this.#send()) ?? assert.fail('an upload was refused'));
  }

  /** Stops and waits for all answers. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running);
  }

  /** The state of a recording, asked for until there is an answer. */
  async stateOf(id: string): Promise<string> {
    for (;;) {
      const { status, body } = await this.#poll(id);
      if (status === 200) return 'completed';
      if (status !== 503) return String(body['status']);
      await sleep(250);
    }
  }

  /** Files that no decoder can read, one after the other. */
  async sendDamaged(count: number, params: Readonly<Record<string, string>> = {}): Promise<void> {
    const query = new URLSearchParams({ file_name: 'damaged.mp3', ...params });
    const init = { method: 'POST', body: Buffer.alloc(20_000, 'this is not a recording ') };
    for (let sent = 0; sent < count; sent++) {
      const { status } = await this.#call('one call', `${ASYNCH_PATHS.requests}?${query}`, init);
      assert.equal(status, 202);
    }
  }

  /** More of the ordinary recordings, one after the other; returns their ids. */
  async sendMore(count: number): Promise<string[]> {
    const ids: string[] = [];
    while (ids.length < count) ids.push((await this.#sendInOneCall()) ?? assert.fail('refused'));
    return ids;
  }

  /** Polls a completed recording until something else is over, and returns the statuses. */
  async pollDuring(work: Promise<unknown>): Promise<Set<number>> {
    const statuses = new Set<number>();
    let over = false;
    const end = work.finally(() => {
      over = true;
    });
    for (; !over; await sleep(EVERY_MS.poll)) statuses.add((await this.#poll(this.#finished)).status);
    await end;
    return statuses;
  }

  #every(ms: number, work: () => Promise<unknown>): void {
    const timer = setInterval(() => {
      const running = work().finally(() => this.#running.delete(running));
      this.#running.add(running);
    }, ms);
    this.#timers.push(timer);
  }

  #classify() {
    const headers = { 'content-type': FORM_TYPE };
    return this.#call('short', '', { method: 'POST', body: VOICE, headers }, PATHS.discrete);
  }

  #poll(id: string) {
    return this.#call('poll', `${ASYNCH_PATHS.prediction}?request_id=${id}`);
  }

  async #sendInOneCall(): Promise<string | null> {
    const init = { method: 'POST', body: RECORDING };
    const { status, body } = await this.#call('one call', `${ASYNCH_PATHS.requests}?${this.#query}`, init);
    if (status !== 202) return null;
    const id = String(body['request_id']);
    this.acknowledged.add(id);
    return id;
  }

  /** While no upload can be initiated, one is completed that was sent before. */
  async #sendInParts(): Promise<void> {
    const upload = (await this.#send()) ?? this.#sent.shift();
    if (upload === undefined) return;
    const at = performance.now();
    const { status } = await this.#call('complete', ASYNCH_PATHS.complete, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(upload),
    });
    if (status === 200) this.acknowledged.add(upload.request_id);
    else this.refused.set(upload.request_id, at);
  }

  async #send(): Promise<CompleteBody | undefined> {
    const path = `${ASYNCH_PATHS.initiate}?${this.#query}&part_count=1`;
    const { status, body } = await this.#call('initiate', path, { method: 'POST' });
    if (status !== 200) return undefined;
    const { request_id, upload_id, presigned_urls } = body as unknown as InitiateResult;
    const sent = await fetch(presigned_urls[0]?.url ?? '', { method: 'PUT', body: RECORDING }).catch(
      () => null,
    );
    // Without S3 the part cannot be sent. It is completed all the same, so that it is seen what the server answers.
    return { request_id, upload_id, parts: [{ PartNumber: 1, ETag: sent?.headers.get('etag') ?? 'none' }] };
  }

  async #call(kind: Kind, path: string, init: RequestInit = {}, base: string = PATHS.asynch) {
    const at = performance.now();
    let [status, body, retryAfter] = [0, {} as Record<string, unknown>, null as string | null];
    try {
      const response = await fetch(this.#url + base + path, {
        ...init,
        headers: { [API_KEY_HEADER]: this.#key, ...init.headers },
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      const text = await response.text();
      status = response.status;
      retryAfter = response.headers.get('retry-after');
      body = text.startsWith('{') ? JSON.parse(text) : {};
    } catch {
      // No answer in time, or a broken connection.
    }
    const code = String(body['code'] ?? '');
    this.calls.push({ kind, at, ms: performance.now() - at, status, code, retryAfter });
    return { status, body };
  }
}

/** One line for each kind of call: how many got which status, and how long they took. */
export function describeCalls(calls: readonly Call[]): string {
  const kinds = Map.groupBy(calls, ({ kind }) => kind);
  return [...kinds]
    .map(([kind, some]) => {
      const statuses = [...Map.groupBy(some, ({ status, code }) => `${status} ${code}`.trim())];
      const counts = statuses.map(([status, all]) => `${all.length} x ${status}`).join(', ');
      const times = some.map(({ ms }) => ms).sort((a, b) => a - b);
      const median = times[Math.floor(times.length / 2)] ?? 0;
      return `  ${kind}: ${counts}; median ${Math.round(median)} ms, longest ${Math.round(times.at(-1) ?? 0)} ms`;
    })
    .join('\n');
}
