import { WEBHOOK_RETRY_SECONDS, type WebhookEvent } from '@undertone/contract';

const HEADERS = {
  'webhook-id': 'The same in every attempt to deliver this event: use it to recognise duplicates.',
  'webhook-timestamp': 'Seconds since 1970, of this attempt. Refuse old ones.',
  'webhook-signature':
    '`v1,` and the base64 of HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`, with the secret of `GET /v1/asynch/webhook-secret`.',
};

const DESCRIPTION = `Sent to the \`webhook_url\` of the request, as the Standard Webhooks specification says; its libraries verify it. Any 2xx means delivered. Otherwise it is sent again, up to ${WEBHOOK_RETRY_SECONDS.length} times in about 7 hours. Redirects are not followed.`;

/** The requests that this service sends, for the OpenAPI document. */
export const WEBHOOKS: Record<string, object> = {
  'request.completed': webhook('completed', 'A result is ready: fetch it with the request_id'),
  'request.failed': webhook('failed', 'A recording could not be processed'),
  'request.expired': webhook('expired', 'A request expired before it was processed'),
};

function webhook(status: WebhookEvent['data']['status'], summary: string) {
  const example: WebhookEvent = {
    type: `request.${status}`,
    timestamp: '2026-01-31T09:30:00.000Z',
    data: { request_id: '0b9f6c1e-6a43-4f0e-9a3e-5d1c8b7f2a10', label: 'call 17', status },
  };
  const schema = { $ref: '#/components/schemas/WebhookEvent' };
  const name = status.charAt(0).toUpperCase() + status.slice(1);
  return {
    post: {
      operationId: `onRequest${name}`,
      tags: ['Asynch'],
      summary,
      description: DESCRIPTION,
      security: [],
      parameters: Object.entries(HEADERS).map(([header, description]) => ({
        name: header,
        in: 'header',
        required: true,
        description,
        schema: { type: 'string' },
      })),
      requestBody: { required: true, content: { 'application/json': { schema, example } } },
      responses: {
        '2XX': { description: 'Delivered' },
        '4XX': { description: 'Not delivered: sent again later' },
      },
    },
  };
}
