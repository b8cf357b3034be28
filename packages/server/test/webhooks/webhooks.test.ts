import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ASYNCH_PATHS, type WebhookEvent } from '@undertone/contract';
import { WebhookEvent as WebhookEventSchema, WebhookSecret } from '@undertone/contract/schemas';
import { tempDir, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { verifyAll } from '@undertone/testing/verify-webhook';
import { wav } from '@undertone/testing/wav';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { Webhook } from 'standardwebhooks';
import Value from 'typebox/value';
import { createLogger } from '../../src/index.ts';
import type { Webhook as Due } from '../../src/stores/contracts.ts';
import type { Resolve } from '../../src/webhooks/address.ts';
import { sendWebhook } from '../../src/webhooks/deliver.ts';

const PRIVATE = { SERVICE_WEBHOOK_PRIVATE: 'true' };
const QUICK = { timeoutMs: 1_000, holdMs: 2_000, pollMs: 20, retryMs: [10, 10, 10, 10, 10, 10] };

async function receiver(...args: Parameters<typeof Receiver.start>): Promise<Receiver> {
  const started = await Receiver.start(...args);
  after(() => started.stop());
  return started;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    assert.ok(tries < 1_000, what);
    await sleep(20);
  }
}

async function secretOf(client: AsynchClient): Promise<string> {
  const answer = await (await client.call(ASYNCH_PATHS.webhookSecret)).json();
  assert.ok(Value.Check(WebhookSecret, answer));
  return answer.secret;
}

const service = await testApp(PRIVATE, { webhookTimes: QUICK });
const client = await AsynchClient.of(service);
service.services.worker.start();
service.services.webhooks.start();

describe('a webhook', () => {
  test('announces completed and failed requests, signed with the secret of the key', async () => {
    const hooks = await receiver(() => 204);
    const query = { webhook_url: hooks.url, label: 'Monday' };
    const done = await client.upload(wav({ seconds: 5 }), 1, query);
    const failed = await client.upload(Buffer.from('no sound'), 1, { webhook_url: hooks.url });
    await until(() => hooks.received.length === 2, 'two webhooks');
    const secret = await secretOf(client);
    await verifyAll(secret, hooks.received);
    const events = hooks.received.map(({ body }) => JSON.parse(body) as WebhookEvent);
    assert.ok(events.every((event) => Value.Check(WebhookEventSchema, event)));
    const [first, second] = events.toSorted((a, b) => (a.type < b.type ? -1 : 1));
    assert.deepEqual(first?.data, { request_id: done, label: 'Monday', status: 'completed' });
    assert.deepEqual([second?.type, second?.data.request_id], ['request.failed', failed]);
    assert.equal(second?.data.label, null);
    // Another key has another secret.
    const { key } = await service.stores.keys.create('another');
    const theirs = await secretOf(await AsynchClient.of(service, key));
    const [{ body, headers } = { body: '', headers: {} }] = hooks.received;
    assert.throws(() => new Webhook(theirs).verify(body, headers as Record<string, string>));
  });

  test('is retried under one id after errors, timeouts, resets and redirects, until it is delivered', async () => {
    const trap = await receiver(() => 204);
    const redirect = (response: import('node:http').ServerResponse) =>
      response.writeHead(307, { location: trap.url }).end();
    const reactions = [500, 'hang', 'reset', redirect, 404, 200] as const;
    const hooks = await receiver((_, attempt) => reactions[attempt - 1] ?? 500);
    await client.upload(wav({ seconds: 5 }), 1, { webhook_url: hooks.url });
    await until(() => hooks.received.length === reactions.length, 'every attempt');
    await sleep(100);
    assert.equal(hooks.received.length, reactions.length, 'no further attempt');
    assert.equal(new Set(hooks.received.map(({ id }) => id)).size, 1);
    assert.equal(new Set(hooks.received.map(({ body }) => body)).size, 1);
    await verifyAll(await secretOf(client), hooks.received);
    assert.equal(trap.received.length, 0, 'a redirect is not followed');
  });

  test('is given up after seven attempts', async () => {
    const hooks = await receiver(() => 500);
    await client.upload(wav({ seconds: 5 }), 1, { webhook_url: hooks.url });
    await until(() => hooks.received.length === 7, 'seven attempts');
    await sleep(200);
    assert.equal(hooks.received.length, 7);
  });

  test('that fails is logged with request, event and reason, but neither URL nor host', async () => {
    const lines: string[] = [];
    const logger = createLogger('warn', { write: (line) => lines.push(line) });
    const logged = await testApp(PRIVATE, { logger, webhookTimes: { ...QUICK, retryMs: [10] } });
    logged.services.worker.start();
    logged.services.webhooks.start();
    const sender = await AsynchClient.of(logged);
    const hooks = await receiver((_, attempt) => (attempt === 1 ? 500 : 'hang'));
    const urls = { hooks: hooks.url, unknown: 'https://no-such-host.invalid/secret-path' };
    const ids = [];
    for (const webhook_url of Object.values(urls)) {
      ids.push(await sender.upload(wav({ seconds: 5 }), 1, { webhook_url }));
    }
    await until(() => lines.length === 4, 'two failed attempts of each webhook');
    const about = lines.map((line) => JSON.parse(line));
    assert.deepEqual(
      ids.map((id) =>
        about
          .filter(({ recording }) => recording === id)
          // ENOTFOUND, or EAI_AGAIN on a machine without DNS.
          .map(({ event, attempt, why }) => [event, attempt, why.replace(/^(ENOTFOUND|EAI_AGAIN)$/, 'DNS')]),
      ),
      [
        [
          ['request.completed', 1, 'the receiver answered 500'],
          ['webhook.given_up', 2, 'timeout'],
        ],
        [
          ['request.completed', 1, 'DNS'],
          ['webhook.given_up', 2, 'DNS'],
        ],
      ],
    );
    const givenUp = about.filter(({ audit }) => audit).map(({ type, owner }) => [type, typeof owner]);
    assert.deepEqual(givenUp, Array(2).fill(['request.completed', 'string']));
    assert.doesNotMatch(lines.join(''), /no-such-host|secret-path|127\.0\.0\.1/);
  });

  test('to a receiver that never answers does not delay those of other keys', async () => {
    const fair = await testApp(PRIVATE, { webhookTimes: { ...QUICK, timeoutMs: 60_000, holdMs: 120_000 } });
    const { requests } = fair.stores;
    const finish = async (owner: string, webhookUrl: string) => {
      const id = randomUUID();
      const request = { id, owner, uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
      await requests.create({ ...request, webhookUrl });
      const limits = { maxRequestBytes: 100, maxOwnerBytes: 1_000 };
      await requests.addPart(id, { number: 1, blob: 'b', etag: 'e', bytes: 1 }, limits);
      await requests.complete(id, new Map([[1, 'e']]));
      const claim = await requests.claim({ leaseMs: 60_000, running: [] });
      await requests.finish(id, claim?.lease ?? '', { result: '{}' });
    };
    const dead = await receiver(() => 'hang');
    const alive = await receiver(() => 204);
    for (let i = 0; i < 150; i++) await finish('one key', dead.url);
    for (let i = 0; i < 10; i++) await finish('another', alive.url);
    fair.services.webhooks.start();
    await until(() => alive.taken.size === 10, 'the webhooks of another key');
    assert.equal(dead.received.length, 4, 'a key has four places');
  });

  test('in flight at a stop is sent again after the next start', async () => {
    const dataDir = await tempDir();
    const hooks = await receiver((_, attempt) => (attempt === 1 ? 'hang' : 200));
    const first = await testApp(PRIVATE, { dataDir, webhookTimes: QUICK });
    const { services } = first;
    services.worker.start();
    services.webhooks.start();
    const sender = await AsynchClient.of(first);
    await sender.upload(wav({ seconds: 5 }), 1, { webhook_url: hooks.url });
    await until(() => hooks.received.length === 1, 'the first attempt');
    await services.webhooks.stop();
    const second = await testApp(PRIVATE, { dataDir, webhookTimes: QUICK });
    second.services.webhooks.start();
    await until(() => hooks.received.length === 2, 'the second attempt');
    assert.equal(new Set(hooks.received.map(({ id }) => id)).size, 1);
  });
});

describe('allowed addresses', () => {
  test('a URL that is not allowed is refused by initiate', async () => {
    const strict = await AsynchClient.of(await testApp());
    for (const webhook_url of ['http://example.org/', 'https://127.0.0.1/', 'https://[::1]/', 'mailto:me']) {
      const problem = await problemOf(await strict.initiate({ webhook_url }), 'bad_request');
      assert.match(problem.detail, /webhook_url/);
    }
    assert.equal((await strict.initiate({ webhook_url: 'https://example.org/hook' })).status, 200);
    await problemOf(await client.initiate({ webhook_url: 'http://169.254.169.254/' }), 'bad_request');
  });

  const due = (url: string): Due => ({
    id: 'msg',
    requestId: '7f3a1c2e-9a40-4c0e-8f5e-0d9a3b1c2d4e',
    owner: 'somebody',
    url,
    label: null,
    status: 'completed',
    createdAt: 0,
    attempts: 0,
    trace: null,
  });
  const resolving =
    (...answers: LookupAddress[][]): Resolve =>
    (_hostname, _options, callback) =>
      callback(null, answers.length > 1 ? (answers.shift() ?? []) : (answers[0] ?? []));
  const send = (url: string, resolve: Resolve, allowPrivate = false) =>
    sendWebhook(due(url), {
      secret: Buffer.alloc(32),
      allowPrivate,
      signal: AbortSignal.timeout(20_000),
      resolve,
    });
  const loopback = { address: '127.0.0.1', family: 4 };

  test('a host name with a private address is not connected to', async () => {
    const hooks = await receiver(() => 200);
    const url = `https://inside.example.org:${hooks.port}/`;
    for (const address of [loopback, { address: '::1', family: 6 }, { address: '10.0.0.1', family: 4 }]) {
      await assert.rejects(send(url, resolving([address])), /private address/);
    }
    const metadata = { address: '169.254.169.254', family: 4 };
    await assert.rejects(send(`http://inside.example.org/`, resolving([metadata]), true), /private address/);
    assert.equal(hooks.received.length, 0);
  });

  test('DNS rebinding: the checked address is the one connected to, from a single lookup', async () => {
    const hooks = await receiver(() => 200);
    let lookups = 0;
    const rebinding: Resolve = (_hostname, _options, callback) => {
      // A public address (that nobody has) for the first lookup, a private one for the second.
      callback(null, [lookups++ === 0 ? { address: '2000::1', family: 6 } : loopback]);
    };
    await assert.rejects(
      sendWebhook(due(`https://rebinding.example.org:${hooks.port}/`), {
        secret: Buffer.alloc(32),
        allowPrivate: false,
        signal: AbortSignal.timeout(300),
        resolve: rebinding,
      }),
    );
    assert.deepEqual([lookups, hooks.received.length], [1, 0]);
  });

  test('only the allowed ones of several addresses are used', async () => {
    const hooks = await receiver(() => 200);
    const both = resolving([{ address: '169.254.169.254', family: 4 }, loopback]);
    await send(`http://inside.example.org:${hooks.port}/`, both, true);
    assert.equal(hooks.received.length, 1);
  });
});
