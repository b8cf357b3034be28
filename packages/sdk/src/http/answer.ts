import { PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from '@undertone/contract';
import { Failure } from '../failure.ts';
import type { Problem } from '../types.ts';
import { isRetryableStatus, parseRetryAfter } from './retry.ts';

/** A response with its body read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Why an answer that is not a success is none. */
export function refusal(answer: Answer, where: string): Failure {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) return redirected(headers.get('location'), where);
  const problem = readProblem(answer);
  const retryAfterSeconds = parseRetryAfter(headers.get('retry-after'), Date.now());
  return new Failure(
    problem ? sentence(problem) : `${where} answered with status ${status}.`,
    {
      status,
      code: problem?.code ?? 'http_error',
      requestId: problem?.request_id ?? headers.get(REQUEST_ID_HEADER) ?? undefined,
      retryAfterSeconds: retryAfterSeconds ?? problem?.retry_after_seconds,
      problem,
    },
    isRetryableStatus(status),
  );
}

/** Reads the JSON of a success; `isRight` looks for what the caller is going to use. */
export function readJson<T>(
  answer: Answer,
  where: string,
  isRight: (value: Record<string, unknown>) => boolean,
): T {
  const value = parseJson(answer.text);
  if (isRecord(value) && isRight(value)) return value as T;
  throw new Failure(
    `${where} answered with status ${answer.status}, but not as this service does: is the address right?`,
    {
      status: answer.status,
      code: 'invalid_answer',
      requestId: answer.headers.get(REQUEST_ID_HEADER) ?? undefined,
    },
  );
}

function readProblem(answer: Answer): Problem | undefined {
  if (!answer.headers.get('content-type')?.startsWith(PROBLEM_CONTENT_TYPE)) return undefined;
  const value = parseJson(answer.text);
  return isRecord(value) && 'code' in value ? (value as unknown as Problem) : undefined;
}

function sentence({ title, detail, code }: Problem): string {
  return detail || title || code;
}

/** A key must not follow a redirection to wherever it leads. */
function redirected(location: string | null, where: string): Failure {
  const target = location ? ` to ${location.split('?')[0]}` : '';
  return new Failure(`${where} redirects${target}: configure the final address.`, { code: 'redirected' });
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
