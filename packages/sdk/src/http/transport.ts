import { Failure } from '../failure.ts';
import type { Log } from '../log.ts';
import type { Answer } from './answer.ts';
import { speakable } from './url.ts';

/** An ordinary call that takes longer than this has been lost on the way. */
const CALL_LIMIT_MS = 60_000;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly body?: NonNullable<RequestInit['body']>;
  readonly signal?: AbortSignal | undefined;
  /** Gives up instead of the usual limit of a minute. */
  readonly deadline?: AbortSignal;
}

/** One attempt at an HTTP call: any answer is returned, no answer is a retryable failure. */
export class Transport {
  readonly #fetch: typeof globalThis.fetch;
  readonly #log: Log;

  constructor(fetch: typeof globalThis.fetch | undefined, log: Log) {
    // Looked up at each call, so that a program may still replace the global one.
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#log = log;
  }

  async send(call: Call): Promise<Answer> {
    const { method, url, headers = {}, body, signal } = call;
    const where = `${method} ${speakable(url)}`;
    const deadline = call.deadline ?? AbortSignal.timeout(CALL_LIMIT_MS);
    const started = performance.now();
    try {
      const response = await this.#fetch(url, {
        method,
        headers,
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        ...(body !== undefined && { body }),
        ...(body instanceof ReadableStream && { duplex: 'half' }),
      } as RequestInit);
      const text = await response.text();
      const status = response.type === 'opaqueredirect' ? 302 : response.status;
      this.#log.debug(`${where}: ${status} in ${Math.round(performance.now() - started)} ms`);
      return { status, headers: response.headers, text };
    } catch (error) {
      signal?.throwIfAborted();
      const why = deadline.aborted ? 'there was no answer in time' : reason(error);
      this.#log.debug(`${where}: ${why}`);
      throw new Failure(
        `The connection to ${speakable(url)} failed: ${why}.`,
        { code: deadline.aborted ? 'timed_out' : 'connection_failed', cause: error },
        true,
      );
    }
  }
}

/** `fetch` hides what happened in a chain of causes: the last one says it best. */
function reason(error: unknown): string {
  let last = error as Error & { code?: string };
  while (last.cause instanceof Error) last = last.cause as Error;
  return (last.message || last.code || String(error)).replace(/\.$/, '');
}
