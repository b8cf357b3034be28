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
  /** One sentence for each thing to mend. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], code = 'invalid_config') {
    super(
      problems.length === 1 ? `${problems[0]}` : `Please mend:\n${problems.map((p) => `- ${p}`).join('\n')}`,
      {
        code,
      },
    );
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

/** The recording did not get through; nothing of it stays behind on the server if that could be helped. */
export class UploadFailedError extends UndertoneError {
  override readonly name: string = 'UploadFailedError';
}

/** The request_id is not one, is unknown to the service under this key, or has expired. */
export class InvalidRequestIdError extends UndertoneError {
  override readonly name: string = 'InvalidRequestIdError';
}

/** The tries were used up before there was a result. The request lives on: ask again with `requestId`. */
export class PredictionTimeoutError extends UndertoneError {
  override readonly name: string = 'PredictionTimeoutError';
}

/** The service could not make a time line of the recording; `code` says why. */
export class PredictionFailedError extends UndertoneError {
  override readonly name: string = 'PredictionFailedError';
}
