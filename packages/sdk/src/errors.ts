import type { Problem } from './types.ts';

export interface ErrorDetails {
  status?: number | undefined;
  code?: string | undefined;
  requestId?: string | undefined;
  retryAfterSeconds?: number | undefined;
  problem?: Problem | undefined;
  cause?: unknown;
}

/** Every error this client throws, but for an abort, which throws the signal's own reason. */
export class UndertoneError extends Error {
  override readonly name: string = 'UndertoneError';
  /** The HTTP status, when the service answered. */
  readonly status: number | undefined;
  /** What programs branch on: a code of the service, or one of this client's own. */
  readonly code: string | undefined;
  /** The asynch request it is about; where there is none, the HTTP request (`x-request-id`). */
  readonly requestId: string | undefined;
  /** Seconds after which the service would like to be asked again. */
  readonly retryAfterSeconds: number | undefined;
  /** All the service said, figures included. */
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

/** A setting or an argument makes no sense. Nothing was sent. */
export class ConfigError extends UndertoneError {
  override readonly name: string = 'ConfigError';
  /** One sentence for each problem, which says how to fix it. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], code = 'invalid_config') {
    const list = problems.map((problem) => `\n- ${problem}`).join('');
    super(problems.length === 1 ? `${problems[0]}` : `Invalid configuration:${list}`, { code });
    this.problems = problems;
  }
}

/** There is no API key, neither given nor in the environment. */
export class MissingApiKeyError extends ConfigError {
  override readonly name: string = 'MissingApiKeyError';

  constructor(problem: string) {
    super([problem], 'missing_api_key');
  }
}

/** The file is not there or cannot be opened. */
export class MissingFileError extends UndertoneError {
  override readonly name: string = 'MissingFileError';
}

/** The service refused a request, or could not be reached. */
export class RequestFailedError extends UndertoneError {
  override readonly name: string = 'RequestFailedError';
}

/** The recording could not be uploaded. If it may succeed later, continue it with `resume: error.requestId`. */
export class UploadFailedError extends UndertoneError {
  override readonly name: string = 'UploadFailedError';
}

/** The request_id is not one, is unknown to the service under this key, or has expired. */
export class InvalidRequestIdError extends UndertoneError {
  override readonly name: string = 'InvalidRequestIdError';
}

/** The tries were used up before there was a result. The request continues: ask again with `requestId`. */
export class PredictionTimeoutError extends UndertoneError {
  override readonly name: string = 'PredictionTimeoutError';
}

/** The service could not make a time line of the recording; `code` says why. */
export class PredictionFailedError extends UndertoneError {
  override readonly name: string = 'PredictionFailedError';
}

type ErrorClass = new (message: string, details: ErrorDetails) => UndertoneError;

/**
 * Runs an operation in which whatever fails throws a `RequestFailedError`; the caller gets the class that
 * `classOf` picks, with the identifier of the asynch request.
 * @internal
 */
export async function failingAs<T>(
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
