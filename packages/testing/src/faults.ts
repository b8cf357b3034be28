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
  | 'tokens'
  | 'models';

/** A request that the server received. */
export interface Seen {
  readonly route: Route;
  readonly part: number | null;
  /** The number of earlier calls to this route (and part). */
  readonly time: number;
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  body: Buffer;
}

/** A failure of the network or the server. */
export type Fault =
  /** Sends this answer instead of handling the request. */
  | { kind: 'answer'; status: number; headers?: Record<string, string>; body?: string }
  /** Cuts the connection after this many bytes of the request. */
  | { kind: 'cut'; afterBytes: number }
  /** Handles the request, then cuts the connection instead of answering. */
  | { kind: 'silent' }
  /** Handles the request, but the answer has no ETag. */
  | { kind: 'no-etag' }
  /** Stores different bytes; the ETag is theirs. */
  | { kind: 'damage' }
  /** Reads the request and never answers. */
  | { kind: 'hang' }
  /** Answers after a delay. */
  | { kind: 'slow'; milliseconds: number; done: () => void }
  /** Acknowledges a part without an ETag, but does not store it. */
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
