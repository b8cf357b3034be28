import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { ASYNCH_PATHS, type AsynchResult, type WebhookEvent } from '@undertone/contract';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { Receiver } from '@undertone/testing/webhook-receiver';
import type { Recording } from './sounds.ts';

const POLL_MS = 500;
const SETTLED_MS = 10 * 60_000;
const WEBHOOK_MS = 60_000;

/** Sends long recordings with webhooks, polls, reads the results and deletes some of them. */
export class Uploads {
  readonly #asynch: AsynchClient;
  readonly #receiver: Receiver;
  /** Called when the webhook of this request arrives. */
  readonly #waiting: Map<string, () => void>;
  #turn = 0;

  static async start(url: string, key: string): Promise<Uploads> {
    const waiting = new Map<string, () => void>();
    const receiver: Receiver = await Receiver.start(({ body }) => {
      const id = (JSON.parse(body) as WebhookEvent).data.request_id;
      waiting.get(id)?.();
      waiting.delete(id);
      // It keeps all webhooks, for tests.
      receiver.received.length = 0;
      receiver.taken.clear();
      return 204;
    });
    return new Uploads(new AsynchClient(url, key), receiver, waiting);
  }

  private constructor(asynch: AsynchClient, receiver: Receiver, waiting: Map<string, () => void>) {
    this.#asynch = asynch;
    this.#receiver = receiver;
    this.#waiting = waiting;
  }

  /** From the upload to the result and the webhook. Every second one is deleted, the others expire. */
  async process({ file, parts, query, steps }: Recording): Promise<void> {
    const upload = await this.#asynch.send(file, parts, { ...query, webhook_url: this.#receiver.url });
    const id = upload.request_id;
    const notified = this.#webhookOf(id);
    const completed = await this.#asynch.complete(upload);
    assert.equal(completed.status, 200, `completing an upload got ${completed.status}`);
    const response = await this.#asynch.settled(id, SETTLED_MS, POLL_MS);
    const body = await response.text();
    assert.equal(response.status, 200, body);
    assert.equal((JSON.parse(body) as AsynchResult).emotions.length, steps, 'steps of a result');
    await notified;
    if (this.#turn++ % 2 === 0) {
      const { status } = await this.#asynch.delete(id);
      assert.equal(status, 204, `deleting got ${status}`);
    }
  }

  /** Not audio: it fails, which is an ordinary answer. */
  async unreadable(): Promise<void> {
    const id = await this.#asynch.upload(randomBytes(100_000), 1);
    const response = await this.#asynch.settled(id, SETTLED_MS, POLL_MS);
    assert.equal(response.status, 422, await response.text());
  }

  /** Its parts are swept when it expires. */
  async abandoned(recording: Recording): Promise<void> {
    await this.#asynch.send(recording.file, recording.parts);
  }

  async list(): Promise<void> {
    const response = await this.#asynch.call(`${ASYNCH_PATHS.requests}?limit=50`);
    assert.equal(response.status, 200, await response.text());
  }

  stop(): Promise<void> {
    return this.#receiver.stop();
  }

  #webhookOf(id: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Counted from the upload: half of the machine is free, so a recording does not wait long.
    const timer = setTimeout(() => {
      this.#waiting.delete(id);
      reject(new Error('no webhook arrived'));
    }, SETTLED_MS + WEBHOOK_MS);
    this.#waiting.set(id, () => {
      clearTimeout(timer);
      resolve();
    });
    promise.catch(() => undefined);
    return promise;
  }
}
