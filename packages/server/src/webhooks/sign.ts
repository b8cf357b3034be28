import { createHmac } from 'node:crypto';
import type { WebhookEvent } from '@undertone/contract';
import type { Webhook } from '../stores/contracts.ts';

/** The signing secret of an owner, in the form that receivers are given. */
export function formatSecret(secret: Buffer): string {
  return `whsec_${secret.toString('base64')}`;
}

/** Identical in every attempt. */
export function bodyOf({ requestId, label, status, createdAt }: Webhook): string {
  const event: WebhookEvent = {
    type: `request.${status}`,
    timestamp: new Date(createdAt).toISOString(),
    data: { request_id: requestId, label, status },
  };
  return JSON.stringify(event);
}

/** Standard Webhooks: id, time of this attempt and body are signed together. */
export function signatureHeaders(id: string, body: string, secret: Buffer): Record<string, string | number> {
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
