import { WebhookVerificationError } from './errors.ts';
import type { WebhookEvent } from './types.ts';

const DEFAULT_TOLERANCE_SECONDS = 5 * 60;

/** The headers of a request: those of `fetch`, or those of Node. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How old a webhook may be, or how far in the future: clocks differ. Default: 300. */
  toleranceSeconds?: number | undefined;
  /** The current time in milliseconds. Default: `Date.now`. */
  now?: (() => number) | undefined;
}

/**
 * Verifies a webhook (Standard Webhooks) and returns its event. Throws a `WebhookVerificationError` if it was not signed
 * with this secret in the last 5 minutes.
 * @param body The raw body: parsing and writing it again would change its bytes.
 * @param secret `whsec_...`, from `asynch.webhookSecret`.
 */
async function verify(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string,
  { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  const ageSeconds = now() / 1000 - Number(timestamp);
  if (!/^\d+$/.test(timestamp) || Math.abs(ageSeconds) > toleranceSeconds) {
    throw refused(`it is more than ${toleranceSeconds} seconds old, or this clock is wrong`);
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body);
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  if (!(await isSigned(signed, signatures, secret))) {
    throw refused('its signature is wrong. Check the secret, and pass the body exactly as it was received');
  }
  return parse(bytes);
}

/** Webhooks of the service. */
export const webhooks = { verify } as const;

/** After a change of the secret there are several signatures. `subtle.verify` compares in constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: string,
  secret: string,
): Promise<boolean> {
  const { subtle } = globalThis.crypto;
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await subtle.importKey('raw', secretBytes(secret), algorithm, false, ['verify']);
  for (const signature of signatures.split(' ')) {
    const [version, encoded = ''] = signature.split(',');
    const bytes = version === 'v1' ? decodeBase64(encoded) : undefined;
    if (bytes && (await subtle.verify('HMAC', key, bytes, signed))) return true;
  }
  return false;
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = decodeBase64(secret.replace(/^whsec_/, ''));
  if (bytes?.length) return bytes;
  throw refused('the secret is not one of this service: it begins with whsec_');
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : lookUp(headers, name);
  if (typeof value === 'string' && value !== '') return value;
  throw refused(`the header ${name} is missing`);
}

function lookUp(headers: Exclude<WebhookHeaders, Headers>, name: string): unknown {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
}

function parse(bytes: Uint8Array): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw refused('its body is not JSON');
  }
}

function refused(reason: string): WebhookVerificationError {
  return new WebhookVerificationError(`The webhook is not valid: ${reason}.`, { code: 'invalid_webhook' });
}
