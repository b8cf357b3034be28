// The page in a real browser, against the real server and model.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { tempDir, testApp } from '@undertone/testing/app';
import { VOICES } from '@undertone/testing/paths';
import { oneSidedCall, talkWav } from '@undertone/testing/talk';
import { silentWav } from '@undertone/testing/wav';
import type { Locator } from 'playwright-core';
import { accessibilityProblems, INSECURE_HOST, openPage, savedBy, startBrowser } from './support/browser.ts';

const service = await testApp();
service.services.worker.start();
after(() => service.services.worker.stop());
const { url } = await service.listen();
const browser = await startBrowser();
const link = `${url}/#key=${service.key}`;
const voice = (name: string) => join(VOICES, name);
const recording = (name: string, buffer: Buffer) => ({ name, mimeType: 'audio/wav', buffer });

const numberOf = (element: Locator, name: string) =>
  element.evaluate((it, property) => Number((it as unknown as Record<string, unknown>)[property]), name);

test('programs get links, browsers get the page, and the app is small', async () => {
  const links = await service.app.inject({ url: '/' });
  assert.equal(links.headers['content-type'], 'application/json; charset=utf-8');
  assert.deepEqual([links.json().docs, links.json().openapi], ['/docs', '/openapi.json']);
  const page = await service.app.inject({ url: '/', headers: { accept: 'text/html,*/*;q=0.8' } });
  assert.match(String(page.headers['content-type']), /^text\/html/);
  assert.match(String(page.headers['content-security-policy']), /script-src 'self';.*connect-src 'self';/);
  assert.doesNotMatch(String(page.headers['content-security-policy']), /unsafe/);
  const { rawPayload } = await service.app.inject({ url: '/page/app.js' });
  assert.ok(gzipSync(rawPayload).length < 150_000);
  assert.equal((await service.app.inject({ url: '/page/..%2fpackage.json' })).statusCode, 404);
});

test('a short recording shows bars and a table, and can be saved', async () => {
  const { page, context, problems } = await openPage(browser, link);
  assert.equal(page.url(), `${url}/`, 'the key is removed from the address bar');
  await page.setInputFiles('input[type=file]', voice('angry-1013.wav'));
  const card = page.getByRole('article').filter({ hasText: 'angry-1013.wav' });
  await card.getByRole('table').waitFor();
  assert.deepEqual(await card.getByRole('columnheader').allTextContents(), ['Time', 'Emotion', 'Confidence']);
  const [time, emotion = '', confidence = ''] = await card.getByRole('cell').allTextContents();
  assert.equal(time, '00:00');
  assert.match(emotion, /angry$/);
  assert.match(confidence, /^\d+\.\d %$/);
  assert.equal(await card.locator('.bars li').count(), 4);
  const csv = await savedBy(page, () => card.getByRole('button', { name: 'CSV' }).click());
  assert.equal(csv.name, 'angry-1013.csv');
  assert.match(csv.text, /^t,seconds,emotion,confidence,.*\n00:00,0,angry,/);
  const json = await savedBy(page, () => card.getByRole('button', { name: 'JSON' }).click());
  assert.equal(JSON.parse(json.text).main_emotion, 'angry');
  await card.getByRole('button', { name: 'Compare models' }).click();
  await card
    .locator('.comparison .bars li')
    .nth(4 + 5 + 7 - 1)
    .waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);
  assert.deepEqual(problems, []);
  await context.close();
});

test('a long recording becomes a timeline, and a click plays from there', async () => {
  const { page, context, problems } = await openPage(browser, link, { colorScheme: 'dark' });
  await page.setInputFiles('input[type=file]', [
    recording('talk.wav', talkWav(32)),
    recording('silence.wav', silentWav(8)),
    recording('call.wav', oneSidedCall(talkWav(15))),
  ]);
  const talk = page.getByRole('article').filter({ hasText: 'talk.wav' });
  const silence = page.getByRole('article').filter({ hasText: 'silence.wav' });
  await talk.getByRole('table').waitFor();
  const rows = await talk.locator('tbody tr').allTextContents();
  assert.equal(rows.length, 7);
  assert.match(rows[6] ?? '', /^00:30.*%$/);
  await silence.getByRole('cell', { name: 'no speech' }).first().waitFor();
  const call = page.getByRole('article').filter({ hasText: 'call.wav' });
  await call.getByRole('columnheader', { name: 'Channel' }).waitFor();
  const silentRows = await call.getByRole('row').filter({ hasText: 'no speech' }).allTextContents();
  assert.deepEqual(
    silentRows.map((row) => row.replaceAll(/\s+/g, ' ')),
    ['00:001 no speech–', '00:051 no speech–', '00:101 no speech–'],
    'each channel has its own rows, numbered from 0, and the second is silent',
  );

  const line = talk.getByRole('slider');
  const { width = 0 } = (await line.boundingBox()) ?? {};
  await line.click({ position: { x: width * 0.5, y: 20 } });
  const at = await numberOf(talk.locator('audio'), 'currentTime');
  assert.ok(at > 15 && at < 18, `plays from ${at}`);
  await page.keyboard.press('Home');
  await talk.locator('.readout', { hasText: '00:00' }).waitFor();
  const srt = await savedBy(page, () => talk.getByRole('button', { name: 'SRT' }).click());
  assert.match(srt.text, /^1\n00:00:00,000 --> 00:00:05,000\n\w+/);
  const png = await savedBy(page, () => talk.getByRole('button', { name: 'PNG' }).click());
  assert.match(png.text, /PNG/);
  assert.deepEqual(await accessibilityProblems(page), []);

  await talk.getByRole('button', { name: 'Delete on the server' }).click();
  await talk.waitFor({ state: 'detached' });
  assert.deepEqual(problems, []);
  await context.close();
});

test('the microphone is classified live, and the recording is kept if requested', async () => {
  const { page, context, problems } = await openPage(browser, link, {
    viewport: { width: 390, height: 844 },
  });
  await page.getByRole('button', { name: 'Microphone' }).click();
  await page.getByLabel('Keep the recording').check();
  await page.locator('tbody tr').nth(1).waitFor();
  // The level is 0 between words.
  while ((await numberOf(page.locator('meter'), 'value')) === 0) await page.waitForTimeout(50);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Microphone' }).waitFor();
  const wavFile = await savedBy(page, () => page.getByRole('button', { name: 'WAV' }).click());
  assert.match(wavFile.text, /^RIFF/);
  const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number;
  assert.ok(wide <= 390, `fits on a phone: ${wide}`);
  assert.deepEqual(await accessibilityProblems(page), []);
  assert.deepEqual(problems, []);
  await context.close();
});

test('explains why the browser blocks the microphone', async () => {
  const insecure = `http://${INSECURE_HOST}:${new URL(url).port}/#key=${service.key}`;
  const { page, context } = await openPage(browser, insecure);
  await page.getByRole('button', { name: 'Microphone' }).click();
  await page.getByRole('alert').filter({ hasText: 'https' }).waitFor();
  await context.close();
});

test('asks for a key, reports a wrong one, and keeps it only for the tab', async () => {
  const { page, context } = await openPage(browser, url);
  await page.setInputFiles('input[type=file]', voice('sad-1028.wav'));
  await page.getByRole('alert').filter({ hasText: 'API key' }).waitFor();
  await page.getByLabel('API key').fill('an-unknown-key');
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByRole('alert').filter({ hasText: 'unknown, expired or revoked' }).waitFor();
  await page.getByLabel('API key').fill(service.key);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('Weights in use').waitFor();
  await page.reload();
  await page.getByText('Weights in use').waitFor();
  assert.equal(await page.evaluate('localStorage.length'), 0);
  const other = await context.newPage();
  await other.goto(url);
  await other.getByLabel('API key').waitFor();
  await context.close();
});

test('example voices work, the newest result is first, and an unreadable file is an alert', async () => {
  const { page, context, problems } = await openPage(browser, link);
  await page.getByRole('button', { name: 'happy-1039' }).click();
  await page.getByRole('table').waitFor();
  await page.setInputFiles('input[type=file]', recording('nonsense.wav', Buffer.from('not a recording')));
  await page.getByRole('alert').waitFor();
  assert.deepEqual(await page.getByRole('article').getByRole('heading', { level: 3 }).allTextContents(), [
    'nonsense.wav',
    'happy-1039.wav',
  ]);
  for (const name of ['model-card.html', 'privacy.html']) {
    await page.goto(`${url}/page/${name}`);
    assert.deepEqual(await accessibilityProblems(page), []);
  }
  // The browser logs failed requests in its console.
  assert.deepEqual(
    problems.filter((text) => !text.includes('status of 4')),
    [],
  );
  await context.close();
});

test('the API page sends operations with the key of the tab, and fits on a phone', async () => {
  const { page, context, problems } = await openPage(browser, link, {
    viewport: { width: 390, height: 844 },
  });
  await page.getByRole('link', { name: 'API', exact: true }).click();
  const models = page.locator('section', { has: page.getByText('/v1/models', { exact: true }) });
  await models.getByText('Try it').click();
  await models.getByRole('button', { name: 'Send' }).click();
  await models.locator('.trial pre').filter({ hasText: '4emotions' }).waitFor();
  const wide = await page.evaluate('document.documentElement.scrollWidth');
  assert.equal(wide, 390);
  assert.deepEqual(await accessibilityProblems(page), []);
  assert.deepEqual(problems, []);
  await context.close();
});

test('the upload walkthrough on the API page works as written', async () => {
  const { page, context } = await openPage(browser, `${url}/docs`);
  const commands = await page.locator('pre.walk').allTextContents();
  await context.close();
  const folder = await tempDir();
  await writeFile(join(folder, 'talk.wav'), talkWav(6));
  const env = { ...process.env, SERVICE_API_KEY: service.key };
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commands.join('\n')], {
    cwd: folder,
    env,
  });
  assert.match(stdout, /"status":"completed","emotions":\[\{"t":"00:00"/);
});
