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

interface ClientOptions {
  readonly url: string;
  readonly key: string;
  /** A form with the part `file`. */
  readonly body: Buffer;
  readonly connections: number;
  /** Without a length that the server could look at before it reads the body. */
  readonly chunked?: boolean;
}

const CHUNK_BYTES = 64 * 1024;

/** Posts one short recording over and over on kept-alive connections, and times each answer from first byte to last. */
export class Client {
  readonly #options: ClientOptions;
  readonly #agent: Agent;
  readonly #sending: Promise<void>[] = [];

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections });
  }

  /** An early answer does not end the sending: a client that sends all before it reads is the harder one to serve. */
  async post(): Promise<Answer> {
    const { url, key, body, chunked = false } = this.#options;
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
    // A client that was answered early may see its connection reset while it still sends the body.
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

  /** When all that was begun is sent or cut off. */
  async close(): Promise<void> {
    await Promise.all(this.#sending);
    this.#agent.destroy();
  }
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) yield body.subarray(at, at + CHUNK_BYTES);
}
