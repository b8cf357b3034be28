import type { ErrorCode, Problem as WireProblem } from '@undertone/contract';

/** The server's explanation of an error (RFC 9457), with the figures that help to fix the request. */
export interface Problem extends Omit<WireProblem, 'code'> {
  /** The code to branch on. Newer servers may send codes that this client does not know. */
  code: string;
}

/** The codes of errors that do not come from the server. */
type ClientErrorCode =
  | 'connection_failed'
  | 'etag_mismatch'
  | 'file_changed'
  | 'going_away'
  | 'http_error'
  | 'invalid_answer'
  | 'invalid_config'
  | 'invalid_request_id'
  | 'invalid_webhook'
  | 'other_recording'
  | 'redirected'
  | 'stream_ended'
  | 'timed_out';

/** The codes of the service and of this client. A newer server may send others: give a `switch` a `default`. */
export type UndertoneErrorCode = ErrorCode | ClientErrorCode;

export interface ErrorDetails {
  status?: number | undefined;
  code?: UndertoneErrorCode | undefined;
  requestId?: string | undefined;
  retryAfterSeconds?: number | undefined;
  problem?: Problem | undefined;
  cause?: unknown;
}

/** The base class of all errors of this client. Only an abort throws something else: the signal's reason. */
export class UndertoneError extends Error {
  override readonly name: string = 'UndertoneError';
  /** The HTTP status, if the server responded. */
  readonly status: number | undefined;
  /** The code to branch on, from the server or from this client. */
  readonly code: UndertoneErrorCode | undefined;
  /** The ID of the asynch request, or else of the HTTP request (`x-request-id`). */
  readonly requestId: string | undefined;
  /** Seconds to wait before the next attempt, if the server asked for it. */
  readonly retryAfterSeconds: number | undefined;
  /** The full problem document from the server. */
  readonly problem: Problem | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = details.status;
    this.code = details.code;
    this.requestId = details.requestId;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.problem = details.problem;
  }
}

/** A setting or an argument is invalid. Nothing was sent. */
export class ConfigError extends UndertoneError {
  override readonly name: string = 'ConfigError';
  /** One sentence per problem, which says how to fix it. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], code: UndertoneErrorCode = 'invalid_config') {
    const list = problems.map((problem) => `\n- ${problem}`).join('');
    super(problems.length === 1 ? `${problems[0]}` : `Invalid configuration:${list}`, { code });
    this.problems = problems;
  }
}

/** No API key was passed or found in the environment. */
export class MissingApiKeyError extends ConfigError {
  override readonly name: string = 'MissingApiKeyError';

  constructor(problem: string) {
    super([problem], 'missing_api_key');
  }
}

/** The file does not exist or cannot be opened. */
export class MissingFileError extends UndertoneError {
  override readonly name: string = 'MissingFileError';
}

/** The server refused a request or could not be reached. */
export class RequestFailedError extends UndertoneError {
  override readonly name: string = 'RequestFailedError';
}

/** The key or token is missing, wrong or revoked (401), or does not allow this call (403). */
export class AuthenticationError extends RequestFailedError {
  override readonly name: string = 'AuthenticationError';
}

/** Too many requests, or a quota is used up (429). Wait `retryAfterSeconds`. */
export class RateLimitError extends RequestFailedError {
  override readonly name: string = 'RateLimitError';
}

/** There is nothing at this address (404), or no longer (410). */
export class NotFoundError extends RequestFailedError {
  override readonly name: string = 'NotFoundError';
}

/** The server did not respond in time, or the `timeout` of a call is over. */
export class RequestTimeoutError extends RequestFailedError {
  override readonly name: string = 'RequestTimeoutError';
}

/** The server could not be reached, or the connection was lost. */
export class ConnectionFailedError extends RequestFailedError {
  override readonly name: string = 'ConnectionFailedError';
}

/** Connection refused on this machine. A person has to start the server, so it is never retried. */
export class ServerNotRunningError extends ConnectionFailedError {}

/** The upload failed; `cause` has the kind. If it was temporary, continue it with `resume: error.requestId`. */
export class UploadFailedError extends UndertoneError {
  override readonly name: string = 'UploadFailedError';
}

/** The request ID is malformed, unknown for this key, or expired. */
export class InvalidRequestIdError extends NotFoundError {
  override readonly name: string = 'InvalidRequestIdError';
}

/** No result within `maxTries` or `timeout`. The request continues: poll again with `requestId`. */
export class PredictionTimeoutError extends RequestTimeoutError {
  override readonly name: string = 'PredictionTimeoutError';
}

/** The recording could not be processed; `code` says why. */
export class PredictionFailedError extends UndertoneError {
  override readonly name: string = 'PredictionFailedError';
}

/** A webhook was not signed with this secret, or not recently. Answer it with 400 and ignore it. */
export class WebhookVerificationError extends UndertoneError {
  override readonly name: string = 'WebhookVerificationError';
}

type ErrorClass = new (message: string, details: ErrorDetails) => UndertoneError;

/**
 * The error class for a refusal, by its status.
 * @internal
 */
export function kindOf(status: number): typeof RequestFailedError {
  if (status === 401 || status === 403) return AuthenticationError;
  if (status === 404 || status === 410) return NotFoundError;
  if (status === 408) return RequestTimeoutError;
  return status === 429 ? RateLimitError : RequestFailedError;
}

/**
 * A copy of an error, of the same class, with another message or other details.
 * @internal
 */
export function copyError(
  error: UndertoneError,
  message: string,
  details: ErrorDetails = {},
): UndertoneError {
  const Class = error.constructor as ErrorClass;
  return new Class(message, { ...error, cause: error.cause, ...details });
}

/**
 * Runs an operation. Adds the ID of the asynch request to its `RequestFailedError`, and wraps it in the class that
 * `classOf` picks.
 * @internal
 */
export async function rethrowAs<T>(
  classOf: (error: RequestFailedError) => ErrorClass | undefined,
  requestId: string | undefined,
  operation: () => Promise<T>,
): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (!(error instanceof RequestFailedError) || error instanceof InvalidRequestIdError) throw error;
    const Class = classOf(error);
    const id = requestId ?? error.requestId;
    if (Class === undefined) throw copyError(error, error.message, { requestId: id });
    throw new Class(error.message, { ...error, requestId: id, cause: error });
  }
}
