import type { ErrorCode, Problem } from '@undertone/contract';
import { readProblem } from './app.ts';

/** Parses a response that must be a problem. */
export async function problemOf(response: Response, code: ErrorCode, status?: number): Promise<Problem> {
  return readProblem(
    {
      status: response.status,
      contentType: response.headers.get('content-type'),
      requestId: response.headers.get('x-request-id'),
      body: await response.text(),
    },
    code,
    status,
  );
}
