import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { API_KEY_HEADER, ASYNCH_PATHS, type InitiateResult, PATHS } from '@undertone/contract';
import { type TestApp, testApp } from '@undertone/testing/app';

const service = await testApp();
const INITIATE = `${PATHS.asynch}${ASYNCH_PATHS.initiate}?file_name=a.wav&part_count=1`;

/** What upload URLs start with. */
async function originFor({ app, key }: TestApp, headers: Record<string, string>): Promise<string> {
  const response = await app.inject({
    method: 'POST',
    url: INITIATE,
    headers: { [API_KEY_HEADER]: key, ...headers },
  });
  assert.equal(response.statusCode, 200, response.body);
  return new URL((response.json() as InitiateResult).presigned_urls[0]?.url ?? '').origin;
}

test('upload URLs never follow a Host that is not this machine', async () => {
  const own = 'http://127.0.0.1:8080';
  const untrustedHosts = [
    'evil.example',
    'evil.example:80',
    '192.0.2.1',
    'x@127.0.0.1',
    '127.0.0.1.evil.example',
  ];
  for (const host of untrustedHosts) {
    assert.equal(await originFor(service, { host }), own, host);
  }
  const machine = hostname().toLowerCase();
  const names = ['localhost', '127.0.0.1', '[::1]', machine, `${machine}.local`];
  for (const host of names.map((name) => `${name}:9000`)) {
    assert.equal(await originFor(service, { host }), `http://${host}`, host);
  }
});

test('a trusted proxy says under which host and protocol it was asked; nobody else does', async () => {
  const forwarded = { host: 'voice.example', 'x-forwarded-proto': 'https' };
  const trusting = await testApp({ SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' });
  assert.equal(await originFor(trusting, forwarded), 'https://voice.example');
  const more = { ...forwarded, 'x-forwarded-host': 'front.example' };
  assert.equal(await originFor(trusting, more), 'https://front.example');
  const other = await testApp({ SERVICE_TRUSTED_PROXIES: '192.0.2.0/24' });
  assert.doesNotMatch(await originFor(other, more), /example|https/);
});
