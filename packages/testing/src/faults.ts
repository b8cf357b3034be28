import type { IncomingMessage, ServerResponse } from 'node:http';
import { ERRORS, type ErrorCode, PROBLEM_CONTENT_TYPE } from '@undertone/contract';

export type Route =
  | 'initiate'
  | 'part'
  | 'complete'
  | 'resume'
  | 'submit'
  | 'prediction'
  | 'list'
  | 'delete'
  | 'secret'
  | 'discrete'
  | 'models';

/** One request as the server saw it. */
export interface Seen {
  readonly route: Route;
  readonly part: number | null;
  /** How often this route (and part) has been called before. */
  readonly time: number;
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  body: Buffer;
}

/** What can go wrong on the way or at the other end. */
export type Fault =
  /** Answers with this instead of doing the work. */
  | { kind: 'answer'; status: number; headers?: Record<string, string>; body?: string }
  /** Cuts the connection after so many bytes of the request. */
  | { kind: 'cut'; afterBytes: number }
  /** Does the work, then cuts the connection instead of answering. */
  | { kind: 'silent' }
  /** Does the work, but the answer has no ETag. */
  | { kind: 'no-etag' }
  /** Stores something else than what was sent, and says so in the ETag. */
  | { kind: 'damage' }
  /** Reads the request and never answers. */
  | { kind: 'hang' }
  /** Claims to have taken a part, without an ETag, but stores nothing. */
  | { kind: 'forget' };

export type FaultPlan = (seen: Seen) => Fault | undefined;

export function sendProblem(
  response: ServerResponse,
  code: ErrorCode,
  detail: string,
  extra: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): void {
  const { status, title } = ERRORS[code];
  const request_id = 'http-1';
  response.writeHead(status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'x-request-id': request_id,
    ...headers,
  });
  response.end(JSON.stringify({ type: 'about:blank', title, status, detail, code, request_id, ...extra }));
}

export function sendJson(
  response: ServerResponse,
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'http-1', ...headers });
  response.end(JSON.stringify(value));
}
