import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { readProblem, testApp } from '@undertone/testing/app';

const service = await testApp();

const OPEN: string[] = ['/', PATHS.health, PATHS.ready, PATHS.metrics, PATHS.openapi, PATHS.docs];

describe('without a key', () => {
  test('doubled and trailing slashes are ignored', async () => {
    for (const url of ['/healthz/', '//healthz', '/readyz//']) {
      assert.equal((await service.app.inject({ url })).statusCode, 200, url);
    }
    const headers = { [API_KEY_HEADER]: service.key };
    assert.equal((await service.app.inject({ url: '//v1/models/', headers })).statusCode, 200);
  });

  test('health, metrics and documentation need no key', async () => {
    for (const url of OPEN) assert.equal((await service.app.inject({ url })).statusCode, 200, url);
  });

  test('every other path is 401, existing or not, with any method', async () => {
    const documented = Object.keys((await service.app.inject({ url: PATHS.openapi })).json().paths);
    const invented = ['/v1', '/admin', '/v1/asynch/prediction', '/docs/x', '/METRICS'];
    // The URL of a part has a signature instead of a key.
    const bySignature = '/v1/asynch/upload/{request_id}/parts/{part_number}';
    assert.ok(documented.includes(bySignature));
    const closed = (path: string) => !OPEN.includes(path) && path !== bySignature;
    const paths = [...documented, ...invented].filter(closed);
    for (const url of paths) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'] as const) {
        readProblem(await service.app.inject({ url, method }), 'missing_api_key');
      }
      const head = await service.app.inject({ url, method: 'HEAD' });
      assert.equal(head.statusCode, 401);
    }
  });
});

describe('browsers', () => {
  test('may not call from other origins by default', async () => {
    const headers = { origin: 'https://app.example.org', [API_KEY_HEADER]: service.key };
    const response = await service.app.inject({ url: PATHS.models, headers });
    assert.equal(response.headers['access-control-allow-origin'], undefined);
  });

  test('may call from the configured origins only', async () => {
    const shared = await testApp({ SERVICE_CORS_ORIGINS: 'https://app.example.org,https://two.example.org' });
    const preflight = (origin: string) =>
      shared.app.inject({
        method: 'OPTIONS',
        url: PATHS.discrete,
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': API_KEY_HEADER,
        },
      });
    const allowed = await preflight('https://app.example.org');
    assert.equal(allowed.statusCode, 204);
    assert.equal(allowed.headers['access-control-allow-origin'], 'https://app.example.org');
    assert.match(String(allowed.headers['access-control-allow-headers']), /x-api-key/);
    const other = await preflight('https://evil.example.org');
    assert.equal(other.headers['access-control-allow-origin'], undefined);
    const answer = await shared.app.inject({
      url: PATHS.models,
      headers: { origin: 'https://app.example.org' },
    });
    assert.equal(answer.statusCode, 401);
    assert.equal(answer.headers['access-control-allow-origin'], 'https://app.example.org');
    assert.match(String(answer.headers['access-control-expose-headers']), /x-request-id/);
  });

  test('get headers against framing, sniffing and scripts', async () => {
    for (const url of ['/nowhere', PATHS.docs, PATHS.health]) {
      const { headers } = await service.app.inject({ url });
      assert.match(String(headers['content-security-policy']), /^default-src 'none'/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['x-frame-options'], 'DENY');
      assert.equal(headers['strict-transport-security'], undefined);
    }
    const https = await testApp({ SERVICE_PUBLIC_URL: 'https://voice.example.org' });
    const { headers } = await https.app.inject({ url: PATHS.health });
    assert.equal(headers['strict-transport-security'], 'max-age=31536000');
  });
});
