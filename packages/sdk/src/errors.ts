import type { Problem } from './types.ts';

export interface ErrorDetails {
  status?: number | undefined;
  code?: string | undefined;
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
  readonly code: string | undefined;
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

  constructor(problems: readonly string[], code = 'invalid_config') {
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

/** The upload failed. If the cause was temporary, continue it with `resume: error.requestId`. */
export class UploadFailedError extends UndertoneError {
  override readonly name: string = 'UploadFailedError';
}

/** The request ID is malformed, unknown for this key, or expired. */
export class InvalidRequestIdError extends UndertoneError {
  override readonly name: string = 'InvalidRequestIdError';
}

/** No result within `maxTries`. The request continues: poll again with `requestId`. */
export class PredictionTimeoutError extends UndertoneError {
  override readonly name: string = 'PredictionTimeoutError';
}

/** The recording could not be processed; `code` says why. */
export class PredictionFailedError extends UndertoneError {
  override readonly name: string = 'PredictionFailedError';
}

type ErrorClass = new (message: string, details: ErrorDetails) => UndertoneError;

/**
 * Runs an operation and converts its `RequestFailedError` to the class that `classOf` picks, with the ID of the asynch
 * request.
 * @internal
 */
export async function rethrowAs<T>(
  classOf: (error: RequestFailedError) => ErrorClass,
  requestId: string | undefined,
  operation: () => Promise<T>,
): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (!(error instanceof RequestFailedError)) throw error;
    const Class = classOf(error);
    throw new Class(error.message, {
      ...error,
      requestId: requestId ?? error.requestId,
      cause: error.cause,
    });
  }
}
