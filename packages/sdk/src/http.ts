import { API_KEY_HEADER, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from '@undertone/contract';
import type { Config } from './config.ts';
import { RequestFailedError } from './errors.ts';
import { Log } from './log.ts';
import type { Platform } from './platform/platform.ts';
import { ASYNCH_RETRIES, parseRetryAfter, ServerNotRunningError, withRetries } from './retry.ts';
import type { Problem } from './types.ts';
import { isLoopback, withoutQuery } from './urls.ts';

/** An ordinary call that takes longer than this has been lost on the way. */
const CALL_TIMEOUT_MS = 60_000;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly body?: NonNullable<RequestInit['body']>;
  readonly signal?: AbortSignal | undefined;
  /** Used instead of the usual timeout of a minute. */
  readonly timeout?: AbortSignal;
}

/** A response with its body read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** What the operations of one client share: where they run, the settings, the log, and how to call the service. */
export class Context {
  readonly platform: Platform;
  readonly config: Config & { readonly apiKey: string };
  readonly log: Log;
  readonly #fetch: typeof globalThis.fetch;

  constructor(platform: Platform, config: Config & { readonly apiKey: string }) {
    this.platform = platform;
    this.config = config;
    this.log = new Log(platform, config.logLevel);
    // Looked up at each call, so that a program may still replace the global one.
    this.#fetch = config.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** A call with the key, retried as often as the client is set to. */
  callWithRetries(what: string, call: Call): Promise<Answer> {
    const retries = { ...ASYNCH_RETRIES, attempts: this.config.retryAttempts, what, signal: call.signal };
    return withRetries(this, retries, () => this.call(call));
  }

  /** One attempt at a call with the key. Any status but 2xx is an error. */
  async call(call: Call): Promise<Answer> {
    const headers = { ...call.headers, [API_KEY_HEADER]: this.config.apiKey };
    const answer = await this.send({ ...call, headers });
    if (answer.status < 200 || answer.status > 299) throw refusal(answer, withoutQuery(call.url));
    return answer;
  }

  /** One attempt at an HTTP call: any answer is returned, no answer is an error. */
  async send(call: Call): Promise<Answer> {
    const { method, url, headers = {}, body, signal } = call;
    const timeout = call.timeout ?? AbortSignal.timeout(CALL_TIMEOUT_MS);
    const started = performance.now();
    const done = (how: string) =>
      this.log.debug(
        `${method} ${withoutQuery(url)}: ${how} in ${Math.round(performance.now() - started)} ms`,
      );
    try {
      const response = await this.#fetch(url, {
        method,
        headers,
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        ...(body !== undefined && { body }),
        ...(body instanceof ReadableStream && { duplex: 'half' }),
      } as RequestInit);
      const text = await response.text();
      const status = response.type === 'opaqueredirect' ? 302 : response.status;
      done(`${status}`);
      return { status, headers: response.headers, text };
    } catch (error) {
      signal?.throwIfAborted();
      done('no answer');
      throw timeout.aborted ? timedOut(url, error) : connectionFailed(url, error);
    }
  }
}

/** Reads the JSON of a success; `isRight` looks for what the caller is going to use. */
export function readJson<T>(
  answer: Answer,
  where: string,
  isRight: (value: Record<string, unknown>) => boolean,
): T {
  const value = parseJson(answer.text);
  if (isRecord(value) && isRight(value)) return value as T;
  throw new RequestFailedError(
    `${where} answered with status ${answer.status}, but not with what this service sends. Check the address.`,
    {
      status: answer.status,
      code: 'invalid_answer',
      requestId: answer.headers.get(REQUEST_ID_HEADER) ?? undefined,
    },
  );
}

/** The error for an answer that is no success. */
export function refusal(answer: Answer, where: string): RequestFailedError {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) return redirected(headers.get('location'), where);
  const problem = readProblem(answer);
  const said = problem && (problem.detail || problem.title || problem.code);
  return new RequestFailedError(said ?? `${where} answered with status ${status}.`, {
    status,
    code: problem?.code ?? 'http_error',
    requestId: problem?.request_id ?? headers.get(REQUEST_ID_HEADER) ?? undefined,
    retryAfterSeconds:
      parseRetryAfter(headers.get('retry-after'), Date.now()) ?? problem?.retry_after_seconds,
    problem,
  });
}

/** The key must not follow a redirection to wherever it leads. */
function redirected(location: string | null, where: string): RequestFailedError {
  const target = location ? ` to ${location.split('?')[0]}` : '';
  return new RequestFailedError(`${where} redirects${target}. Configure the final address.`, {
    code: 'redirected',
  });
}

function timedOut(url: string, cause: unknown): RequestFailedError {
  return new RequestFailedError(`${withoutQuery(url)} did not answer in time.`, { code: 'timed_out', cause });
}

function connectionFailed(url: string, cause: unknown): RequestFailedError {
  // `fetch` hides what happened in a chain of causes: the last one says it best.
  let last = cause as Error & { code?: string };
  while (last.cause instanceof Error) last = last.cause as Error;
  const details = { code: 'connection_failed', cause };
  if (isLoopback(url) && /ECONNREFUSED|connection ?refused/i.test(`${last.code} ${last.message}`)) {
    const message =
      `No server is running at ${new URL(url).origin}. ` +
      'Start one with `undertone serve`, or set SERVICE_URL (option baseUrl) to the address of your server.';
    return new ServerNotRunningError(message, details);
  }
  const reason = (last.message || last.code || String(cause)).replace(/\.$/, '');
  const message = `The connection to ${withoutQuery(url)} failed: ${reason}.${crossOriginHint(url)}`;
  return new RequestFailedError(message, details);
}

/** A browser tells a page nothing about why it may not read an answer. */
function crossOriginHint(url: string): string {
  const { location } = globalThis as { location?: { origin?: string } };
  const origin = location?.origin;
  if (origin === undefined || origin === new URL(url).origin) return '';
  return ` If the server runs, it has to allow this page: SERVICE_CORS_ORIGINS=${origin}.`;
}

function readProblem(answer: Answer): Problem | undefined {
  if (!answer.headers.get('content-type')?.startsWith(PROBLEM_CONTENT_TYPE)) return undefined;
  const value = parseJson(answer.text);
  return isRecord(value) && 'code' in value ? (value as unknown as Problem) : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
