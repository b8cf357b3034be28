import { AudioError, DecoderDiedError } from '@undertone/audio';
import { ClosedError, NoThreadsError, OverloadedError } from '@undertone/classifier';
import {
  ASYNCH_LIMITS,
  ERRORS,
  type ErrorCode,
  isErrorCode,
  MODEL_IDS,
  PATHS,
  type Problem,
} from '@undertone/contract';
import { QuotaExceededError, StoreUnavailableError } from './stores/errors.ts';

type Figures = Record<string, unknown>;

interface ProblemOptions {
  /** Extra members of the body that help to fix the request, such as `min_seconds`. */
  figures?: Figures;
  /** If it is not the usual status of the code. */
  status?: number;
  headers?: Record<string, string>;
  cause?: unknown;
}

/** Thrown anywhere in the server to refuse a request. */
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

  /** The response body (RFC 9457). */
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
    };
  }
}

/** With a `Retry-After` header, and the same figure in the body. */
export function retryLater(
  code: 'overloaded' | 'rate_limited' | 'quota_exceeded',
  detail: string,
  seconds: number,
  { cause, figures }: Pick<ProblemOptions, 'cause' | 'figures'> = {},
): ProblemError {
  const whole = Math.max(1, Math.ceil(seconds));
  return new ProblemError(code, detail, {
    figures: { ...figures, retry_after_seconds: whole },
    headers: { 'retry-after': String(whole) },
    cause,
  });
}

export function fileTooLarge(): ProblemError {
  const max_bytes = ASYNCH_LIMITS.maxFileBytes;
  return new ProblemError('file_too_large', `All parts together may have ${max_bytes} bytes (1 GiB).`, {
    figures: { max_bytes },
  });
}

/** Nothing more can be stored. */
export function storageLimit(limit: number, used: number): ProblemError {
  const detail = `${used} of ${limit} bytes are stored or arriving. Delete requests, or wait until recordings are processed.`;
  return new ProblemError('storage_limit', detail, {
    figures: { limit, used, limit_bytes: limit, used_bytes: used },
  });
}

/** How to get below a quota, and whether waiting helps. */
const QUOTAS = {
  open: { what: 'unfinished uploads', next: 'Complete or delete some of them first.' },
  queued: {
    what: 'recordings waiting for a worker',
    next: 'Try again when some are processed.',
    seconds: 10,
  },
};

function quotaExceeded({ quota, limit, used }: QuotaExceededError): ProblemError {
  if (quota === 'storage') return storageLimit(limit, used);
  const { what, next, seconds } = { seconds: undefined, ...QUOTAS[quota] };
  const detail = `You have ${used} ${what}, and ${limit} are allowed. ${next}`;
  const figures = { limit, used };
  if (seconds === undefined) return new ProblemError('quota_exceeded', detail, { figures });
  return retryLater('quota_exceeded', detail, seconds, { figures });
}

export function unknownModel(models: readonly string[]): ProblemError {
  const detail = `The query parameter model must be one of ${models.join(', ')}.`;
  return new ProblemError('unknown_model', detail, { figures: { models } });
}

/** The one place that maps errors from other packages and from Fastify to problems. */
export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof AudioError) {
    const code = isErrorCode(error.code) ? error.code : 'unreadable_audio';
    return new ProblemError(code, error.message, { figures: { ...error.figures }, cause: error });
  }
  if (error instanceof DecoderDiedError) return retryLater('overloaded', error.message, 5, error);
  if (error instanceof OverloadedError) {
    return retryLater('overloaded', error.message, error.retryAfterSeconds);
  }
  if (error instanceof NoThreadsError) {
    return retryLater('overloaded', 'No inference thread is running. Try again in 5 seconds.', 5, {
      cause: error,
    });
  }
  if (error instanceof ClosedError)
    return retryLater('overloaded', 'The server is shutting down. Try again in 1 second.', 1);
  if (error instanceof StoreUnavailableError) {
    // Temporary: clients retry a 503 but give up on a 500.
    const detail = `The store is unavailable: ${error.reason}. No acknowledged data is lost. Try again later.`;
    return retryLater('overloaded', detail, 5, { cause: error });
  }
  if (error instanceof QuotaExceededError) return quotaExceeded(error);
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
    'This is a bug in the server, and it was logged. If it happens again, tell the operator the request_id.',
    { cause },
  );
}

function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
