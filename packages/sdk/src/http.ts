import { API_KEY_HEADER, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from '@undertone/contract';
import { untilAborted, withTimeout } from './abort.ts';
import { type Config, throwIfAny, timeoutProblem } from './config.ts';
import {
  ConnectionFailedError,
  kindOf,
  RequestFailedError,
  RequestTimeoutError,
  ServerNotRunningError,
  type UndertoneErrorCode,
} from './errors.ts';
import { Log } from './log.ts';
import type { Platform } from './platform/platform.ts';
import { ASYNCH_RETRIES, parseRetryAfter, withRetries } from './retry.ts';
import type { CallOptions, Problem } from './types.ts';
import { isLoopback, withoutQuery } from './urls.ts';

const CALL_TIMEOUT_MS = 60_000;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly body?: NonNullable<RequestInit['body']>;
  readonly signal?: AbortSignal | undefined;
  /** Replaces the default timeout of a minute. */
  readonly timeout?: AbortSignal;
}

/** A response and its body. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Shared by all operations of a client: platform, settings, log and HTTP calls. */
export class Context {
  readonly platform: Platform;
  readonly config: Config & { readonly apiKey: string };
  readonly log: Log;
  readonly #fetch: typeof globalThis.fetch;

  constructor(platform: Platform, config: Config & { readonly apiKey: string }) {
    this.platform = platform;
    this.config = config;
    this.log = new Log(config.logger ?? platform.logger, config.logLevel);
    // Looked up on each call, so that a program can still replace the global fetch.
    this.#fetch = config.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** A call with the key and the retries of the client's settings. */
  callWithRetries(what: string, call: Call): Promise<HttpResponse> {
    const retries = { ...ASYNCH_RETRIES, attempts: this.config.retryAttempts, what, signal: call.signal };
    return withRetries(this, retries, () => this.call(call));
  }

  /** One attempt at a call with the key. Any status other than 2xx is an error. */
  async call(call: Call): Promise<HttpResponse> {
    const headers = { ...call.headers, [API_KEY_HEADER]: this.config.apiKey };
    const response = await this.send({ ...call, headers });
    if (response.status < 200 || response.status > 299) throw refusal(response, withoutQuery(call.url));
    return response;
  }

  /** One attempt at an HTTP call: returns any response, throws if there is none. */
  async send(call: Call): Promise<HttpResponse> {
    const { method, url, headers = {}, body, signal } = call;
    const timeout = call.timeout ?? AbortSignal.timeout(CALL_TIMEOUT_MS);
    const started = performance.now();
    const done = (how: string) =>
      this.log.debug(
        `${method} ${withoutQuery(url)}: ${how} in ${Math.round(performance.now() - started)} ms`,
      );
    try {
      const either = signal ? AbortSignal.any([signal, timeout]) : timeout;
      const sent = this.#fetch(url, {
        method,
        headers: this.#headersFor(url, headers),
        redirect: 'manual',
        signal: either,
        ...(body !== undefined && { body }),
        ...(body instanceof ReadableStream && { duplex: 'half' }),
      } as RequestInit);
      // A `fetch` of the caller's own may ignore the signal.
      const response = await untilAborted(sent, either);
      const text = await untilAborted(response.text(), either);
      const status = response.type === 'opaqueredirect' ? 302 : response.status;
      done(`${status}`);
      return { status, headers: response.headers, text };
    } catch (error) {
      signal?.throwIfAborted();
      done('no response');
      throw timeout.aborted ? timedOut(url, error) : connectionFailed(url, error);
    }
  }

  /** Custom headers go to the server itself, not to the object store that takes the parts. */
  #headersFor(url: string, own: Record<string, string>): Headers {
    const { asynchUrl, discreteUrl, headers: custom } = this.config;
    const { origin } = new URL(url);
    const isServer = [asynchUrl, discreteUrl].some((address) => new URL(address).origin === origin);
    const headers = new Headers(this.platform.headers);
    // Names are case-insensitive, and what a call needs goes last.
    for (const more of isServer ? [custom, own] : [own]) {
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
    }
    return headers;
  }
}

/** Runs one operation: checks the settings, then limits its time. */
export async function operate<T>(
  begin: () => Context,
  { signal, timeout }: CallOptions,
  run: (context: Context, signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  throwIfAny([timeoutProblem(timeout)]);
  const context = begin();
  return withTimeout({ signal, timeout: timeout ?? context.config.timeout }, (either) =>
    run(context, either),
  );
}

/** Parses the JSON of a success; `isValid` checks the fields that the caller uses. */
export function readJson<T>(
  response: HttpResponse,
  where: string,
  isValid: (value: Record<string, unknown>) => boolean,
): T {
  const value = parseJson(response.text);
  if (isRecord(value) && isValid(value)) return value as T;
  throw new RequestFailedError(
    `${where} sent status ${response.status}, but not a response of this service. Check the address.`,
    {
      status: response.status,
      code: 'invalid_answer',
      requestId: response.headers.get(REQUEST_ID_HEADER) ?? undefined,
    },
  );
}

/** The error for a response other than 2xx. */
export function refusal(response: HttpResponse, where: string): RequestFailedError {
  const { status, headers } = response;
  if (status >= 300 && status < 400) return redirected(headers.get('location'), where);
  const problem = readProblem(response);
  const said = problem && (problem.detail || problem.title || problem.code);
  const Kind = kindOf(status);
  return new Kind(said ?? `${where} responded with status ${status}.`, {
    status,
    // A newer server may have codes that this client does not know.
    code: (problem?.code as UndertoneErrorCode | undefined) ?? 'http_error',
    requestId: problem?.request_id ?? headers.get(REQUEST_ID_HEADER) ?? undefined,
    retryAfterSeconds:
      parseRetryAfter(headers.get('retry-after'), Date.now()) ?? problem?.retry_after_seconds,
    problem,
  });
}

/** Redirects are not followed: the key must not leak to another host. */
function redirected(location: string | null, where: string): RequestFailedError {
  const target = location ? ` to ${location.split('?')[0]}` : '';
  return new RequestFailedError(`${where} redirects${target}. Configure the final URL.`, {
    code: 'redirected',
  });
}

function timedOut(url: string, cause: unknown): RequestTimeoutError {
  return new RequestTimeoutError(`${withoutQuery(url)} did not respond in time.`, {
    code: 'timed_out',
    cause,
  });
}

function connectionFailed(url: string, cause: unknown): ConnectionFailedError {
  // `fetch` hides the reason in a chain of causes; the last one is the most specific.
  let last = cause as Error & { code?: string };
  while (last.cause instanceof Error) last = last.cause as Error;
  const details = { code: 'connection_failed', cause } as const;
  if (isLoopback(url) && /ECONNREFUSED|connection ?refused/i.test(`${last.code} ${last.message}`)) {
    const message =
      `No server is running at ${new URL(url).origin}. ` +
      'Start one with `undertone serve`, or set SERVICE_URL (option baseUrl) to the URL of your server.';
    return new ServerNotRunningError(message, details);
  }
  const reason = (last.message || last.code || String(cause)).replace(/\.$/, '');
  const message = `The connection to ${withoutQuery(url)} failed: ${reason}.${crossOriginHint(url)}`;
  return new ConnectionFailedError(message, details);
}

/** Browsers hide the reason for a CORS failure from the page. */
function crossOriginHint(url: string): string {
  const { location } = globalThis as { location?: { origin?: string } };
  const origin = location?.origin;
  if (origin === undefined || origin === new URL(url).origin) return '';
  return ` If the server is running, it must allow this page: SERVICE_CORS_ORIGINS=${origin}.`;
}

function readProblem(response: HttpResponse): Problem | undefined {
  if (!response.headers.get('content-type')?.startsWith(PROBLEM_CONTENT_TYPE)) return undefined;
  const value = parseJson(response.text);
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
