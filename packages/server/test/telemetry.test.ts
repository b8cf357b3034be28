import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { API_KEY_HEADER, ASYNCH_PATHS, PATHS } from '@undertone/contract';
import { postFile, sharedClassifier, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { ROOT } from '@undertone/testing/paths';
import { wav } from '@undertone/testing/wav';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { openTelemetry } from '../src/telemetry/open.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const SERVICE = { version: '0', role: 'all' };

interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
}

/** An OTLP collector that keeps the spans it gets. */
async function startCollector(): Promise<{ url: string; spans: ReceivedSpan[] }> {
  const spans: ReceivedSpan[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString());
    for (const { scopeSpans } of resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans };
}

await sharedClassifier();

test('spans of a call, its stores, its processing and its webhook are one trace', async () => {
  const collector = await startCollector();
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.url;
  const telemetry = await openTelemetry(process.env, SERVICE, (error) => assert.fail(String(error)));
  delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const service = await testApp(
    { SERVICE_WEBHOOK_PRIVATE: 'true' },
    { telemetry, webhookTimes: { pollMs: 20 } },
  );
  const receiver = await Receiver.start(() => 204);
  after(() => receiver.stop());
  const { url } = await service.listen();
  service.services.worker.start();
  service.services.webhooks.start();
  const headers = { [API_KEY_HEADER]: service.key, traceparent: `00-${TRACE_ID}-${PARENT}-01` };
  const query = new URLSearchParams({ webhook_url: receiver.url });
  const sent = await fetch(`${url}${PATHS.asynch}${ASYNCH_PATHS.requests}?${query}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'audio/wav' },
    body: wav({ seconds: 5 }),
  });
  const { request_id } = (await sent.json()) as { request_id: string };
  await (await AsynchClient.of(service)).result(request_id);
  for (let tries = 0; receiver.received.length === 0; tries++) {
    assert.ok(tries < 500, 'the webhook did not arrive');
    await sleep(10);
  }
  await postFile(service, wav(), { headers: { traceparent: headers.traceparent } });
  await service.services.webhooks.stop();
  await telemetry.stop();

  const spans = collector.spans.filter(({ traceId }) => traceId === TRACE_ID);
  const one = (name: string) => {
    const found = spans.find((span) => span.name === name);
    assert.ok(found, `${name} in ${spans.map((span) => span.name)}`);
    return found;
  };
  const call = one(`POST ${PATHS.asynch}${ASYNCH_PATHS.requests}`);
  assert.equal(call.parentSpanId, PARENT);
  assert.equal(one('requests.create').parentSpanId, call.spanId);
  const processing = one('process recording');
  assert.equal(processing.parentSpanId, call.spanId);
  assert.equal(one('decode and inference').parentSpanId, processing.spanId);
  assert.equal(one('requests.parts').parentSpanId, processing.spanId);
  const webhook = one('webhook');
  assert.equal(webhook.parentSpanId, call.spanId);
  assert.equal(receiver.received[0]?.headers['traceparent'], `00-${TRACE_ID}-${webhook.spanId}-01`);
  const clip = one(`POST ${PATHS.discrete}`);
  for (const name of ['decode', 'inference']) assert.equal(one(name).parentSpanId, clip.spanId);
});

test('without an endpoint nothing of OpenTelemetry is loaded', async () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({
      resolve(specifier, context, next) {
        // The library of the metrics loads the interface without an implementation.
        const isOurs = !context.parentURL?.includes('/prom-client/');
        if (/opentelemetry/.test(specifier) && isOurs) loaded.push(specifier);
        return next(specifier, context);
      },
    });
    await import('./packages/server/src/index.ts');
    const { openTelemetry } = await import('./packages/server/src/telemetry/open.ts');
    const off = await openTelemetry({}, ${JSON.stringify(SERVICE)}, console.error);
    console.log(JSON.stringify([off.isOn, loaded]));`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  assert.deepEqual(JSON.parse(stdout), [false, []]);
});
