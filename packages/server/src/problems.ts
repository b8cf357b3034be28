import { AudioError } from '@undertone/audio';
import { ClosedError, NoThreadsError, OverloadedError } from '@undertone/classifier';
import { ERRORS, type ErrorCode, isErrorCode, MODEL_IDS, PATHS, type Problem } from '@undertone/contract';
import { StoreUnavailableError } from './stores/errors.ts';

type Figures = Record<string, unknown>;

interface ProblemOptions {
  /** Members that help to fix the request, such as `min_seconds` and `actual_seconds`. */
  figures?: Figures;
  /** Where it is not the one of the code. */
  status?: number;
  headers?: Record<string, string>;
  cause?: unknown;
}

/** What any part of the server throws when a request cannot be answered as asked. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly figures: Figures;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, detail: string, options: ProblemOptions = {}) {
    const { figures = {}, headers = {}, status = ERRORS[code].status, cause } = options;
    super(detail, { cause });
    this.code = code;
    this.status = status;
    this.figures = figures;
    this.headers = headers;
  }

  /** The body of the answer, as RFC 9457 wants it. */
  toBody(requestId: string): Problem {
    const { title } = ERRORS[this.code];
    return {
      type: `${PATHS.docs}#${this.code}`,
      title,
      status: this.status,
      detail: this.message,
      code: this.code,
      request_id: requestId,
      ...this.figures,
      ...this.#forOlderClients(),
    };
  }

  /** Clients of this kind of API exist that read a wrong length under other names. */
  #forOlderClients(): Figures {
    if (this.code !== 'audio_too_short' && this.code !== 'audio_too_long') return {};
    const renamed = (['min', 'max', 'actual'] as const)
      .filter((bound) => `${bound}_seconds` in this.figures)
      .map((bound) => [`${bound}_duration_seconds`, this.figures[`${bound}_seconds`]]);
    return { error: this.message, error_code: this.code.toUpperCase(), ...Object.fromEntries(renamed) };
  }
}

/** With the header and the figure that tell a client when to come back. */
export function retryLater(
  code: 'overloaded' | 'rate_limited',
  detail: string,
  seconds: number,
  cause?: unknown,
): ProblemError {
  const whole = Math.max(1, Math.ceil(seconds));
  return new ProblemError(code, detail, {
    figures: { retry_after_seconds: whole },
    headers: { 'retry-after': String(whole) },
    cause,
  });
}

export function unknownModel(models: readonly string[]): ProblemError {
  const detail = `The query parameter model must be one of ${models.join(', ')}.`;
  return new ProblemError('unknown_model', detail, { figures: { models } });
}

/** The one place where errors of other rooms and of the framework become ours. */
export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof AudioError) {
    const code = isErrorCode(error.code) ? error.code : 'unreadable_audio';
    return new ProblemError(code, error.message, { figures: { ...error.figures }, cause: error });
  }
  if (error instanceof OverloadedError) {
    return retryLater('overloaded', error.message, error.retryAfterSeconds);
  }
  if (error instanceof NoThreadsError) {
    return retryLater('overloaded', 'No inference thread is running. Try again in 5 seconds.', 5, error);
  }
  if (error instanceof ClosedError) return retryLater('overloaded', 'This server is stopping.', 1);
  if (error instanceof StoreUnavailableError) {
    // Nobody's mistake, and it passes: 503, which clients wait out, rather than 500, which tells them to give up.
    const detail = `The server cannot store anything now: ${error.reason}. Nothing that it acknowledged is lost. Try again later.`;
    return retryLater('overloaded', detail, 5, error);
  }
  return asFrameworkProblem(error) ?? internal(error);
}

interface FrameworkError extends Error {
  statusCode?: number;
  validation?: { instancePath: string; keyword: string; params: Record<string, unknown> }[];
}

function asFrameworkProblem(error: unknown): ProblemError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { statusCode, validation, message } = error as FrameworkError;
  if (validation?.some(({ instancePath }) => instancePath === '/model')) {
    return unknownModel(MODEL_IDS);
  }
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500) return undefined;
  const code = (Object.keys(ERRORS) as ErrorCode[]).find(
    (candidate) => ERRORS[candidate].status === statusCode,
  );
  return new ProblemError(code ?? 'bad_request', sentence(message), { cause: error });
}

function internal(cause: unknown): ProblemError {
  return new ProblemError(
    'internal',
    'This is our fault, and it was logged. Tell the operator the request_id if it happens again.',
    { cause },
  );
}

function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
