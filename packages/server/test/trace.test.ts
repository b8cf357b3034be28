// One recording, followed through the log by the ids of its lines.
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, ASYNCH_PATHS, PATHS } from '@undertone/contract';
import { sharedClassifier, type TestOptions, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { wav } from '@undertone/testing/wav';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { createLogger } from '../src/index.ts';
import { traceOf } from '../src/trace.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const PRIVATE = { SERVICE_WEBHOOK_PRIVATE: 'true' };
const WEBHOOK_TIMES = { pollMs: 20, retryMs: [10] };

async function loggedApp(options: TestOptions = {}) {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) }, 'worker');
  const service = await testApp(PRIVATE, { logger, webhookTimes: WEBHOOK_TIMES, ...options });
  service.services.worker.start();
  service.services.webhooks.start();
  const { url } = await service.listen();
  /** The lines about a recording, up to the one with this message. */
  const until = async (recording: string, last: string) => {
    const about = () => lines.filter((line) => line['recording'] === recording);
    for (let tries = 0; !about().some(({ msg }) => msg === last); tries++) {
      assert.ok(tries < 1_000, JSON.stringify(lines));
      await sleep(10);
    }
    return about();
  };
  return { ...service, url, lines, until };
}

async function hooks(react: Parameters<typeof Receiver.start>[0]): Promise<Receiver> {
  const receiver = await Receiver.start(react);
  after(() => receiver.stop());
  return receiver;
}

// Started here, so that its threads do not belong to the first test.
await sharedClassifier();

const messages = (lines: Record<string, unknown>[]) => lines.map(({ msg }) => msg);

describe('the log', () => {
  test('names a recording from the call that sent it to its webhook, which continues the trace', async () => {
    const service = await loggedApp();
    const receiver = await hooks(() => 204);
    const query = new URLSearchParams({ webhook_url: receiver.url });
    const response = await fetch(`${service.url}${PATHS.asynch}${ASYNCH_PATHS.requests}?${query}`, {
      method: 'POST',
      headers: {
        [API_KEY_HEADER]: service.key,
        'x-request-id': 'call-7',
        traceparent: TRACEPARENT,
        'content-type': 'audio/wav',
      },
      body: wav({ seconds: 5 }),
    });
    const { request_id } = (await response.json()) as { request_id: string };
    const lines = await service.until(request_id, 'webhook delivered');
    assert.deepEqual(messages(lines).toSorted(), [
      'answered',
      'recording claimed',
      'recording completed',
      'webhook delivered',
    ]);
    const [key] = await service.stores.keys.list();
    for (const line of lines) {
      const { service, role, host, version, request_id, trace_id, key: keyId } = line;
      assert.deepEqual([service, role, host], ['undertone', 'worker', hostname()]);
      assert.match(String(version), /^\d+\.\d+\.\d+/);
      assert.deepEqual([request_id, trace_id, keyId], ['call-7', TRACE_ID, key?.id]);
      assert.ok(!Number.isNaN(Date.parse(String(line['time']))) && typeof line['level'] === 'number');
    }
    const of = (message: string) => lines.find(({ msg }) => msg === message) ?? {};
    assert.ok(Number(of('recording claimed')['waited_ms']) >= 0);
    assert.equal(of('recording completed')['audio_seconds'], 5);
    assert.ok(Number(of('recording completed')['ms']) >= 0 && Number(of('webhook delivered')['ms']) >= 0);
    assert.equal(of('recording completed')['attempt'], 1);
    const sent = String(receiver.received[0]?.headers['traceparent']);
    assert.match(sent, new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`));
    assert.notEqual(sent, TRACEPARENT, 'with a parent id of its own');
  });

  test('has a line for each call about a recording, each failed attempt and each retried webhook', async () => {
    const receiver = await hooks(() => 500);
    let attempts = 0;
    const real = await sharedClassifier();
    const classifier = new Proxy(real, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target);
        if (name !== 'classifyRecording') return typeof value === 'function' ? value.bind(target) : value;
        return (...args: Parameters<typeof real.classifyRecording>) =>
          attempts++ === 0 ? Promise.reject(new Error('lost')) : real.classifyRecording(...args);
      },
    });
    const workerTimes = { pollMs: 20, pauseMs: 20, attemptDelaysMs: [10, 10] };
    const service = await loggedApp({ classifier, workerTimes });
    const client = await AsynchClient.of(service);
    const id = await client.upload(wav({ seconds: 5 }), 1, { webhook_url: receiver.url });
    const lines = await service.until(id, 'webhook.given_up');
    const worker = messages(lines).filter((message) => message !== 'answered');
    assert.deepEqual(worker, [
      'recording claimed',
      'recording requeued after an error',
      'recording claimed',
      'recording completed',
      'webhook not delivered; retried later',
      'webhook.given_up',
    ]);
    const attemptsIn = (message: string) =>
      lines.filter(({ msg }) => msg === message).map(({ attempt }) => attempt);
    assert.deepEqual(attemptsIn('recording claimed'), [1, 2]);
    const answered = lines
      .filter(({ msg }) => msg === 'answered')
      .map(({ method, status }) => [method, status]);
    assert.deepEqual(answered, [
      ['POST', 200],
      ['PUT', 200],
      ['POST', 200],
    ]);
    const failed = await client.upload(Buffer.from('no sound'), 1);
    const [refused] = (await service.until(failed, 'recording failed')).slice(-1);
    assert.equal(refused?.['code'], 'unreadable_audio');
  });
});

test('a traceparent that is not valid is not kept', () => {
  const given = (traceparent: string) =>
    traceOf({ id: 'x', caller: null, headers: { traceparent } } as never).traceparent;
  assert.equal(given(TRACEPARENT), TRACEPARENT);
  for (const wrong of [
    '',
    'x',
    TRACEPARENT.toUpperCase(),
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `${TRACEPARENT}\n`,
  ]) {
    assert.equal(given(wrong), null, wrong);
  }
});
