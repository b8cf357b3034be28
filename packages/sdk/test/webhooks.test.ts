import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { type WebhookEvent, WebhookVerificationError, webhooks } from '../src/index.ts';

const SECRET = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
const OTHER = `whsec_${Buffer.from('another secret, same size').toString('base64')}`;
const NOW = Date.parse('2026-01-02T03:04:05Z');
const EVENT: WebhookEvent = {
  type: 'request.completed',
  timestamp: new Date(NOW).toISOString(),
  data: { request_id: '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10', label: 'Grüße', status: 'completed' },
};
const BODY = JSON.stringify(EVENT);
const now = () => NOW;

/** The headers that the reference implementation signs with. */
function signed({ secret = SECRET, at = NOW, body = BODY, id = 'msg_1' } = {}) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(at), body),
  };
}

async function refuses(verifying: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(verifying, (error) => {
    assert(error instanceof WebhookVerificationError);
    assert.equal(error.code, 'invalid_webhook');
    assert.match(error.message, message);
    assert(!error.message.includes(SECRET.slice(6)), 'the secret is not shown');
    return true;
  });
}

test('a webhook signed by the reference implementation gives its event, whatever its headers and body are', async () => {
  const headers = signed();
  const capitals = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  for (const form of [headers, new Headers(headers), capitals]) {
    assert.deepEqual(await webhooks.verify(BODY, form, SECRET, { now }), EVENT);
  }
  const bytes = Buffer.from(BODY);
  for (const body of [bytes, new Uint8Array(bytes), new Uint8Array(bytes).buffer]) {
    assert.deepEqual(await webhooks.verify(body, headers, SECRET, { now }), EVENT);
  }
  assert.deepEqual(await webhooks.verify(BODY, headers, SECRET.replace('whsec_', ''), { now }), EVENT);
});

test('one right signature of several is enough', async () => {
  const headers = signed();
  const old = signed({ secret: OTHER })['webhook-signature'];
  const several = {
    ...headers,
    'webhook-signature': `v1a,AAAA ${old} v1,%% ${headers['webhook-signature']}`,
  };
  assert.deepEqual(await webhooks.verify(BODY, several, SECRET, { now }), EVENT);
  await refuses(
    webhooks.verify(BODY, { ...headers, 'webhook-signature': old }, SECRET, { now }),
    /signature/,
  );
});

test('a changed body, id or time, or another version of the signature, is refused', async () => {
  const headers = signed();
  await refuses(webhooks.verify(`${BODY} `, headers, SECRET, { now }), /exactly as it was received/);
  await refuses(webhooks.verify(BODY, { ...headers, 'webhook-id': 'msg_2' }, SECRET, { now }), /signature/);
  const later = { ...headers, 'webhook-timestamp': String(NOW / 1000 + 1) };
  await refuses(webhooks.verify(BODY, later, SECRET, { now }), /signature/);
  const v2 = { ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1,', 'v2,') };
  await refuses(webhooks.verify(BODY, v2, SECRET, { now }), /signature/);
});

test('a webhook is valid for five minutes, before and after', async () => {
  for (const at of [NOW - 300_000, NOW + 300_000]) {
    assert.deepEqual(await webhooks.verify(BODY, signed({ at }), SECRET, { now }), EVENT);
  }
  for (const at of [NOW - 301_000, NOW + 301_000]) {
    await refuses(webhooks.verify(BODY, signed({ at }), SECRET, { now }), /more than 300 seconds/);
  }
  const notANumber = { ...signed(), 'webhook-timestamp': 'yesterday' };
  await refuses(webhooks.verify(BODY, notANumber, SECRET, { now }), /seconds/);
});

test('missing headers, a wrong secret and a body that is not JSON are clear errors', async () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    await refuses(
      webhooks.verify(BODY, { ...signed(), [name]: undefined }, SECRET, { now }),
      new RegExp(name),
    );
  }
  for (const secret of ['', 'whsec_', 'whsec_%']) {
    await refuses(webhooks.verify(BODY, signed(), secret, { now }), /begins with whsec_/);
  }
  await refuses(webhooks.verify('hello', signed({ body: 'hello' }), SECRET, { now }), /not JSON/);
});
