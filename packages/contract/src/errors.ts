interface ErrorEntry {
  readonly status: number;
  readonly title: string;
}

/** Every error the service answers with: the one place where a code gets its status and title. */
export const ERRORS = {
  bad_request: { status: 400, title: 'The request is not well formed' },
  missing_file: { status: 400, title: 'The form has no file' },
  unknown_model: { status: 400, title: 'There is no such model' },
  audio_too_short: { status: 400, title: 'The recording is too short' },
  audio_too_long: { status: 400, title: 'The recording is too long' },
  missing_api_key: { status: 401, title: 'An API key is needed' },
  invalid_api_key: { status: 401, title: 'The API key is not valid' },
  forbidden: { status: 403, title: 'This address does not allow it' },
  not_found: { status: 404, title: 'There is nothing here' },
  method_not_allowed: { status: 405, title: 'This path has no such method' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  conflict: { status: 409, title: 'The request does not fit the present state' },
  gone: { status: 410, title: 'This has expired' },
  file_too_large: { status: 413, title: 'The file is too large' },
  storage_limit: { status: 413, title: 'This key has no storage left' },
  unsupported_media_type: { status: 415, title: 'This format cannot be read' },
  unreadable_audio: { status: 422, title: 'The audio cannot be read' },
  sample_rate_too_low: { status: 422, title: 'The sample rate is too low' },
  sample_rate_too_high: { status: 422, title: 'The sample rate is too high' },
  processing_failed: { status: 422, title: 'The recording could not be processed' },
  rate_limited: { status: 429, title: 'Too many requests with this key' },
  headers_too_large: { status: 431, title: 'The request headers are too large' },
  internal: { status: 500, title: 'Something went wrong on our side' },
  overloaded: { status: 503, title: 'The service is busy' },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}
