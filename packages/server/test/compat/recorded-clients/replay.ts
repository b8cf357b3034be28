import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';

/** One HTTP request of a client, and its response. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly withKey?: boolean;
  readonly body?: string;
  readonly status: number;
  readonly shape?: unknown;
}

/** A WebSocket, and the messages of the client. */
export interface Conversation {
  readonly webSocket: string;
  readonly messages: readonly { readonly text: string; readonly times: number }[];
}

export type Recorded = Exchange | Conversation;

/** The shape of a value, without its figures. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}

/** Replays the recorded requests of an existing client, byte for byte except ids, and compares the responses. */
export class Replay {
  readonly #origin: string;
  readonly #audio: Buffer;
  readonly #values: Map<string, string>;

  constructor(origin: string, key: string, audio: Buffer) {
    this.#origin = origin;
    this.#audio = audio;
    this.#values = new Map([['key', key]]);
  }

  async run(recorded: readonly Recorded[]): Promise<void> {
    for (const step of recorded) await ('path' in step ? this.#exchange(step) : this.#conversation(step));
  }

  async #exchange(exchange: Exchange): Promise<void> {
    const { method, path, status, shape } = exchange;
    const what = `${method} ${path}`;
    for (let tries = 0; ; tries++) {
      const answer = await this.#send(exchange);
      const same = answer.status === status && (shape === undefined || sameShape(answer.text, shape));
      // Poll until a long recording is completed.
      if (same || method !== 'GET' || tries === 200) {
        assert.equal(answer.status, status, `${what}: ${answer.text}`);
        if (shape !== undefined) assert.deepEqual(shapeOf(JSON.parse(answer.text)), shape, what);
        return;
      }
      await sleep(50);
    }
  }

  async #send({ method, path, headers, withKey, body = '' }: Exchange) {
    const [before = '', after] = this.#filled(body).split('{{audio}}');
    const bytes = Buffer.concat([
      Buffer.from(before, 'latin1'),
      ...(after === undefined ? [] : [this.#audio, Buffer.from(after, 'latin1')]),
    ]);
    const key = withKey ? { 'x-api-key': this.#values.get('key') } : {};
    const sent = request(this.#origin + this.#filled(path), {
      method,
      headers: { ...headers, ...key, 'content-length': bytes.length },
    }).end(bytes);
    const [response] = await once(sent, 'response');
    const text = (await buffer(response)).toString();
    // The request_id of a problem is that of the HTTP request.
    if (response.statusCode === 200) this.#learn(text, response.headers.etag);
    return { status: response.statusCode as number, text };
  }

  async #conversation({ webSocket, messages }: Conversation): Promise<void> {
    const socket = new WebSocket(this.#origin.replace(/^http/, 'ws') + this.#filled(webSocket));
    const heard: string[] = [];
    socket.on('message', (data) => heard.push(String(data)));
    await once(socket, 'open');
    const hear = async (start: string) => {
      while (!heard.some((text) => text.startsWith(start))) await once(socket, 'message');
    };
    for (const { text, times } of messages) {
      const filled = this.#filled(text).replace(/\{\{(\d+) bytes\}\}/, (_, bytes) =>
        Buffer.alloc(Number(bytes)).toString('base64'),
      );
      for (let i = 0; i < times; i++) {
        // Clients disconnect after their last expected message.
        if (filled.startsWith('41') || filled === '1') await hear('42["prediction"');
        socket.send(filled);
      }
      if (filled === '2probe') await hear('3probe');
      if (filled.startsWith('40')) await hear('40{');
    }
    await hear('42["prediction"');
    socket.close();
    const [, prediction] = JSON.parse(
      heard.find((text) => text.startsWith('42["prediction"'))?.slice(2) ?? '',
    );
    assert.deepEqual(Object.keys(prediction), ['main_emotion', 'confidence', 'all_predictions', 'timestamp']);
    assert.ok(heard.some((text) => text.startsWith('42["connected",{"session_id":')));
  }

  #filled(text: string): string {
    return text.replace(/\{\{([a-z_]+)\}\}/g, (placeholder, name) => this.#values.get(name) ?? placeholder);
  }

  #learn(text: string, etag: string | undefined): void {
    if (etag !== undefined) this.#values.set('etag', JSON.stringify(etag).slice(1, -1));
    for (const [, name = '', value = ''] of text.matchAll(/"(request_id|upload_id|sid)":"([^"]+)"/g)) {
      this.#values.set(name, value);
    }
    const [, url] = /"url":"([^"]+)"/.exec(text) ?? [];
    if (url !== undefined) this.#values.set('url', new URL(url).pathname + new URL(url).search);
  }
}

function sameShape(text: string, shape: unknown): boolean {
  try {
    return JSON.stringify(shapeOf(JSON.parse(text))) === JSON.stringify(shape);
  } catch {
    return false;
  }
}
