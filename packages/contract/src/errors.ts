interface ErrorEntry {
  readonly status: number;
  readonly title: string;
}

/** The table of errors: the status and title of every code. */
export const ERRORS = {
  bad_request: { status: 400, title: 'The request is malformed' },
  missing_file: { status: 400, title: 'The form contains no file' },
  unknown_model: { status: 400, title: 'Unknown model' },
  audio_too_short: { status: 400, title: 'The recording is too short' },
  audio_too_long: { status: 400, title: 'The recording is too long' },
  missing_api_key: { status: 401, title: 'The API key is missing' },
  invalid_api_key: { status: 401, title: 'The API key is invalid' },
  forbidden: { status: 403, title: 'Not permitted by this URL or token' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'The request was not received in time' },
  conflict: { status: 409, title: 'The request conflicts with the current state' },
  gone: { status: 410, title: 'The request has expired' },
  file_too_large: { status: 413, title: 'The file is too large' },
  storage_limit: { status: 413, title: 'The storage quota of this key is used up' },
  unsupported_media_type: { status: 415, title: 'The format is not supported' },
  unreadable_audio: { status: 422, title: 'The audio cannot be read' },
  sample_rate_too_low: { status: 422, title: 'The sample rate is too low' },
  sample_rate_too_high: { status: 422, title: 'The sample rate is too high' },
  result_too_large: { status: 422, title: 'The result would be too large' },
  processing_failed: { status: 422, title: 'The recording could not be processed' },
  rate_limited: { status: 429, title: 'Too many requests with this key' },
  quota_exceeded: { status: 429, title: 'A quota of this key is used up' },
  headers_too_large: { status: 431, title: 'The request headers are too large' },
  internal: { status: 500, title: 'Internal server error' },
  overloaded: { status: 503, title: 'The service is busy' },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}
