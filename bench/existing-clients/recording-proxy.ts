import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type Exchange, type Recorded, shapeOf } from '@undertone/testing/replay';
import { WebSocket, WebSocketServer } from 'ws';

/** Headers that the sender's library generates. */
const NOT_KEPT = ['host', 'content-length', 'connection', 'x-api-key', 'transfer-encoding'];
const PAYLOAD = /("payload\\?": ?\\?")([A-Za-z0-9+/=]+)/g;

/**
 * A proxy that records what a client sends and the shape of the answers. Values that change with each run (ids, URLs,
 * ETags) are replaced by placeholders, and so is the audio.
 */
export class RecordingProxy {
  readonly recorded: Recorded[] = [];
  readonly #server = createServer((request, response) => void this.#forward(request, response));
  readonly #webSockets = new WebSocketServer({ noServer: true });
  readonly #names = new Map<string, string>();
  readonly #audio: Buffer;
  #target = '';

  constructor(key: string, audio: Buffer) {
    this.#names.set(key, '{{key}}');
    this.#audio = audio;
    this.#server.on('upgrade', (request, socket, head) =>
      this.#webSockets.handleUpgrade(request, socket, head, (client) => this.#relay(request, client)),
    );
  }

  async listen(port: number): Promise<string> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  sendTo(target: string): void {
    this.#target = target;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const body = await buffer(request);
    const exchange: Exchange = {
      method,
      path: this.#named(url),
      headers: Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) =>
          NOT_KEPT.includes(name) ? [] : [[name, String(value)]],
        ),
      ),
      ...('x-api-key' in headers && { withKey: true }),
      ...(body.length > 0 && { body: this.#named(this.#withoutAudio(body)) }),
      status: 0,
    };
    const [answer] = (await once(send(this.#target + url, { method, headers }).end(body), 'response')) as [
      IncomingMessage,
    ];
    const bytes = await buffer(answer);
    const text = bytes.toString();
    this.#learn(text, answer.headers.etag);
    const kept = { ...exchange, status: answer.statusCode ?? 0, ...shapeOfText(text) };
    // Of repeated polls only the last answer matters.
    const last = this.recorded.at(-1);
    if (last !== undefined && 'path' in last && method === 'GET' && last.path === kept.path)
      this.recorded.pop();
    this.recorded.push(kept);
    response.writeHead(kept.status, answer.headers).end(bytes);
  }

  #relay({ url = '' }: IncomingMessage, client: WebSocket): void {
    const messages: { text: string; times: number }[] = [];
    this.recorded.push({ webSocket: this.#named(url), messages });
    const server = new WebSocket(this.#target.replace(/^http/, 'ws') + url);
    const waiting: string[] = [];
    client.on('message', (data) => {
      const text = String(data);
      if (server.readyState === WebSocket.OPEN) server.send(text);
      else waiting.push(text);
      const named = this.#named(
        text.replace(PAYLOAD, (_, head, payload) => `${head}{{${base64Bytes(payload)} bytes}}`),
      );
      if (messages.at(-1)?.text === named) (messages.at(-1) as { times: number }).times++;
      else if (named !== '3') messages.push({ text: named, times: 1 }); // a pong
    });
    server.on('open', () => {
      for (const text of waiting) server.send(text);
    });
    server.on('message', (data) => client.send(String(data)));
    server.on('close', () => client.close());
    client.on('close', () => server.close());
  }

  #withoutAudio(body: Buffer): string {
    const at = body.indexOf(this.#audio);
    if (at < 0) return body.toString('latin1');
    const after = body.subarray(at + this.#audio.length).toString('latin1');
    return `${body.subarray(0, at).toString('latin1')}{{audio}}${after}`;
  }

  #named(text: string): string {
    let named = text;
    // Longest first, because URLs contain ids.
    const names = [...this.#names].toSorted(([a], [b]) => b.length - a.length);
    for (const [value, name] of names) named = named.replaceAll(value, name);
    return named;
  }

  /** Learns the values that the client will send back. */
  #learn(text: string, etag: string | undefined): void {
    if (etag !== undefined) this.#names.set(JSON.stringify(etag).slice(1, -1), '{{etag}}');
    for (const [, name = '', value = ''] of text.matchAll(/"(request_id|upload_id|sid)":"([^"]+)"/g)) {
      this.#names.set(value, `{{${name}}}`);
    }
    const [, url] = /"url":"([^"]+)"/.exec(text) ?? [];
    if (url !== undefined) {
      const { pathname, search } = new URL(url);
      this.#names.set(pathname + search, '{{url}}');
    }
  }
}

function shapeOfText(text: string): { shape?: unknown } {
  try {
    return { shape: shapeOf(JSON.parse(text)) };
  } catch {
    return {};
  }
}

function base64Bytes(text: string): number {
  return Buffer.from(text, 'base64').length;
}
