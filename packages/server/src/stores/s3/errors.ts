import { StoreUnavailableError } from '../unavailable.ts';

const REFUSED = 'its object store refuses the credentials';

const REASONS = new Map([
  ['NoSuchBucket', 'its bucket does not exist'],
  ['AccessDenied', REFUSED],
  ['Forbidden', REFUSED],
  ['InvalidAccessKeyId', REFUSED],
  ['SignatureDoesNotMatch', REFUSED],
  ['ExpiredToken', REFUSED],
  ['CredentialsProviderError', 'there are no credentials for its object store'],
  ['SlowDown', 'its object store is too busy'],
  ['TooManyRequests', 'its object store is too busy'],
]);

/** Errors of the object store that pass or that an operator can end, as StoreUnavailableError; any other as it is. */
export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, $metadata, code } = error as Error & {
    $metadata?: { httpStatusCode?: number };
    code?: string;
  };
  const status = $metadata?.httpStatusCode ?? 0;
  const reason = REASONS.get(name) ?? (status >= 500 ? 'its object store has an error' : undefined);
  if (reason !== undefined) return new StoreUnavailableError(reason, { cause: error });
  const network = code !== undefined || name === 'TimeoutError' || name === 'AbortError';
  if (status !== 0 || !network) return error;
  return new StoreUnavailableError('its object store cannot be reached', { cause: error });
}
