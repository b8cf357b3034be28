import { Agent, request } from 'node:http';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';

export interface Answer {
  readonly status: number;
  readonly ms: number;
  readonly retryAfterSeconds: number;
}

/** Posts one body over and over on kept-alive connections, and times every answer from first byte to last. */
export class Client {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #body: Buffer;
  readonly #agent: Agent;

  constructor(options: { url: string; key: string; type: string; body: Buffer; connections: number }) {
    this.#url = options.url + PATHS.discrete;
    this.#headers = {
      [API_KEY_HEADER]: options.key,
      'content-type': options.type,
      'content-length': String(options.body.length),
    };
    this.#body = options.body;
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections });
  }

  post(): Promise<Answer> {
    const start = performance.now();
    return new Promise((resolve, reject) => {
      const sent = request(
        this.#url,
        { method: 'POST', headers: this.#headers, agent: this.#agent },
        (response) => {
          response.resume();
          response.once('error', reject);
          response.once('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              ms: performance.now() - start,
              retryAfterSeconds: Number(response.headers['retry-after'] ?? 0),
            }),
          );
        },
      );
      sent.once('error', reject);
      sent.end(this.#body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
