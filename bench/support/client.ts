import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { FORM_TYPE } from './voice.ts';

export interface Answer {
  readonly status: number;
  readonly ms: number;
  readonly retryAfterSeconds: number;
}

interface Server {
  readonly url: string;
  readonly key: string;
}

interface ClientOptions {
  /** A form with the part `file`. */
  readonly body: Buffer;
  readonly connections?: number;
  /** Send no content-length. */
  readonly chunked?: boolean;
}

const CHUNK_BYTES = 64 * 1024;

/** Posts one short recording repeatedly over keep-alive connections. Times each request from first byte sent to last received. */
export class Client {
  readonly #server: Server;
  readonly #options: ClientOptions;
  readonly #agent: Agent;
  readonly #sending: Promise<void>[] = [];

  constructor(server: Server, options: ClientOptions) {
    this.#server = server;
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections ?? 1 });
  }

  /** Keeps sending after an early answer: clients that send everything before they read are the harder ones to serve. */
  async post(): Promise<Answer> {
    const { url, key } = this.#server;
    const { body, chunked = false } = this.#options;
    const start = performance.now();
    const sent = request(url + PATHS.discrete, {
      method: 'POST',
      headers: {
        [API_KEY_HEADER]: key,
        'content-type': FORM_TYPE,
        ...(!chunked && { 'content-length': body.length }),
      },
      agent: this.#agent,
    });
    const sending = pipeline(Readable.from(chunked ? piecesOf(body) : [body]), sent);
    // After an early answer the connection may be reset while the body is still being sent.
    this.#sending.push(sending.catch(() => undefined));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return {
      status: response.statusCode ?? 0,
      ms: performance.now() - start,
      retryAfterSeconds: Number(response.headers['retry-after'] ?? 0),
    };
  }

  /** Waits until every body is sent or cut off. */
  async close(): Promise<void> {
    await Promise.all(this.#sending);
    this.#agent.destroy();
  }
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) yield body.subarray(at, at + CHUNK_BYTES);
}
