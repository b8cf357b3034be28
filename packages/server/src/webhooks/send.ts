import { createHmac } from 'node:crypto';
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { WebhookEvent } from '@undertone/contract';
import type { Webhook } from '../stores/contracts.ts';
import { isAllowed, requireWebhookUrl } from './address.ts';

/** As `dns.lookup` with `all`. */
export type Resolve = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface SendOptions {
  /** See `secretOf`. */
  readonly secret: Buffer;
  readonly allowPrivate: boolean;
  readonly signal: AbortSignal;
  readonly now?: () => number;
  readonly resolve?: Resolve;
}

/** One attempt. Rejects unless the receiver answers 2xx; a redirect is no such answer, and is not followed. */
export async function sendWebhook(webhook: Webhook, options: SendOptions): Promise<void> {
  const { allowPrivate, signal, resolve = lookup } = options;
  const url = requireWebhookUrl(webhook.url, allowPrivate);
  const body = bodyOf(webhook);
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: 'POST',
    agent: false,
    signal,
    lookup: checkedLookup(resolve, allowPrivate),
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'undertone-webhooks',
      ...signatureHeaders(webhook.id, body, options),
    },
  });
  // After the answer nobody waits for an error of the connection any more.
  request.on('error', () => undefined).end(body);
  const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
  const { statusCode = 0 } = response;
  // What it says beyond its status is not read. A connection that breaks now has said enough.
  response.on('error', () => undefined).destroy();
  if (statusCode < 200 || statusCode > 299) throw new Error(`the receiver answered ${statusCode}`);
}

/**
 * The address that is checked is the one that is connected to: it is looked up once, here, by the connection itself. A
 * name cannot have one address for the check and another for the connection.
 */
function checkedLookup(resolve: Resolve, allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = (addresses ?? []).filter(({ address }) => isAllowed(address, allowPrivate));
      const [first] = allowed;
      if (error !== null || first === undefined) {
        callback(error ?? new Error('the receiver has a private address'), '', 0);
      } else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** As Standard Webhooks has it: id, time of this attempt and body are signed together. */
function signatureHeaders(id: string, body: string, { secret, now = Date.now }: SendOptions) {
  const timestamp = Math.floor(now() / 1000);
  const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

/** The same with every attempt. */
function bodyOf({ requestId, label, status, createdAt }: Webhook): string {
  const event: WebhookEvent = {
    type: `request.${status}`,
    timestamp: new Date(createdAt).toISOString(),
    data: { request_id: requestId, label, status },
  };
  return JSON.stringify(event);
}
