import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PATHS, type StreamPrediction } from '@undertone/contract';
import { WebSocket } from 'ws';
import type { TestApp } from './app.ts';

type Message = { type: string; code?: string; duration_seconds?: number };

/** A client of `/v1/stream` that keeps every message. */
export class StreamClient {
  readonly socket: WebSocket;
  readonly messages: Message[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(url: string, key: string, query: Record<string, string | number> = {}) {
    this.socket = new WebSocket(streamUrl(url, query), { headers: { 'x-api-key': key } });
    this.socket.on('message', (data) => this.messages.push(JSON.parse(String(data))));
    this.closed = new Promise((resolve, reject) => {
      this.socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
      this.socket.once('error', reject);
    });
    this.closed.catch(() => undefined);
  }

  static async open(service: TestApp, query: Record<string, string | number> = {}): Promise<StreamClient> {
    const { url } = await service.listen();
    const client = new StreamClient(url, service.key, query);
    await once(client.socket, 'open');
    return client;
  }

  send(...pieces: Uint8Array[]): this {
    for (const piece of pieces) this.socket.send(piece);
    return this;
  }

  say(message: object | string): this {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
    return this;
  }

  /** Sends `end` and waits until the server closes the stream. */
  async end(): Promise<{ code: number; reason: string }> {
    this.say({ type: 'end' });
    return this.closed;
  }

  get predictions(): StreamPrediction[] {
    return this.messages.filter(({ type }) => type === 'prediction') as unknown as StreamPrediction[];
  }

  /** Waits for this many messages. */
  async received(count: number): Promise<this> {
    while (this.messages.length < count) await once(this.socket, 'message');
    return this;
  }
}

export function streamUrl(url: string, query: Record<string, string | number> = {}): string {
  const address = new URL(PATHS.stream, url.replace(/^http/, 'ws'));
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, String(value));
  return address.href;
}

/** The HTTP response to a refused upgrade. */
export async function refusal(url: string, options: { headers?: Record<string, string> } = {}) {
  const socket = new WebSocket(url, options);
  socket.on('error', () => undefined);
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  const body = Buffer.concat(await response.toArray()).toString();
  const { headers, statusCode: status = 0 } = response;
  return {
    status,
    headers,
    contentType: headers['content-type'],
    requestId: headers['x-request-id'],
    body,
  };
}
