// The page with recordings uploaded directly from the browser to S3, as with several machines.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { testApp } from '@undertone/testing/app';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { talkWav } from '@undertone/testing/talk';
import { openPage, startBrowser } from './support/browser.ts';

Object.assign(process.env, S3_CREDENTIALS);

const s3 = await S3Server.shared();
after(() => s3.remove());
const service = await testApp({
  SERVICE_S3_BUCKET: await s3.newBucket(),
  SERVICE_S3_ENDPOINT: s3.endpoint,
  SERVICE_PUBLIC_URL: 'https://voice.example.org',
});
service.services.worker.start();
after(() => service.services.worker.stop());
const { url } = await service.listen();
const browser = await startBrowser();

test('uploads a long recording directly to S3, and its policy allows only S3 and the public address', async () => {
  const { page, problems } = await openPage(browser, `${url}/#key=${service.key}`, {
    allowed: [s3.endpoint],
  });
  const puts: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'PUT') puts.push(new URL(request.url()).origin);
  });
  const buffer = talkWav(21);
  await page.getByLabel('Choose files').setInputFiles({ name: 'call.wav', mimeType: 'audio/wav', buffer });
  await page.getByRole('table').waitFor();
  await page.locator('tbody tr', { hasText: '00:21' }).waitFor();
  assert.deepEqual(puts, [s3.endpoint]);
  assert.deepEqual(problems, []);
  const { headers } = await service.app.inject({ url: '/', headers: { accept: 'text/html' } });
  const [, sources] = /connect-src ([^;]*)/.exec(String(headers['content-security-policy'])) ?? [];
  assert.equal(sources, `'self' https://voice.example.org wss://voice.example.org ${s3.endpoint}`);
});
