// The page in a real browser, against the real server and model: keys, errors, the microphone and documents.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { tempDir, testApp } from '@undertone/testing/app';
import { VOICES } from '@undertone/testing/paths';
import { talkWav } from '@undertone/testing/talk';
import { silentWav } from '@undertone/testing/wav';
import {
  accessibilityProblems,
  choose,
  eventually,
  INSECURE_HOST,
  numberOf,
  openPage,
  savedBy,
  startBrowser,
  wav,
} from './support/browser.ts';

const service = await testApp();
service.services.worker.start();
after(() => service.services.worker.stop());
const { url } = await service.listen();
const browser = await startBrowser();
const link = `${url}/#key=${service.key}`;
const voice = (name: string) => join(VOICES, name);
const PHONE = { viewport: { width: 390, height: 844 } };

test('programs get links, browsers get the page, and the first load is small', async () => {
  const links = await service.app.inject({ url: '/' });
  assert.equal(links.headers['content-type'], 'application/json; charset=utf-8');
  assert.deepEqual([links.json().docs, links.json().openapi], ['/docs', '/openapi.json']);
  const page = await service.app.inject({ url: '/', headers: { accept: 'text/html,*/*;q=0.8' } });
  assert.match(String(page.headers['content-type']), /^text\/html/);
  assert.match(String(page.headers['content-security-policy']), /script-src 'self';.*connect-src 'self';/);
  assert.doesNotMatch(String(page.headers['content-security-policy']), /unsafe/);
  let bytes = gzipSync(page.rawPayload).length;
  for (const [, path] of page.body.matchAll(/(?:src|href)="(\/page\/[^"]+)"/g)) {
    const { rawPayload } = await service.app.inject({ url: String(path) });
    bytes += gzipSync(rawPayload).length;
  }
  assert.ok(bytes > 20_000 && bytes < 100_000, `${bytes} bytes`);
  assert.equal((await service.app.inject({ url: '/page/..%2fpackage.json' })).statusCode, 404);
});

test('waits for a key, reports a wrong one, shows which is in use, and keeps it only for the tab', async () => {
  const { page, context } = await openPage(browser, url);
  for (const name of ['Microphone', 'angry-1013', 'Use this key']) {
    assert.ok(await page.getByRole('button', { name }).isDisabled(), name);
  }
  assert.ok(await page.getByLabel('Choose files').isDisabled());
  const field = page.getByLabel('API key or token');
  await field.fill('an-unknown-key');
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByRole('alert').filter({ hasText: 'unknown, expired or revoked' }).waitFor();
  const tops = await page.locator('.field').evaluate((it) => {
    const middle = (child: { offsetTop: number; offsetHeight: number }) =>
      child.offsetTop + child.offsetHeight / 2;
    return [...(it as unknown as { children: { offsetTop: number; offsetHeight: number }[] }).children]
      .slice(1)
      .map(middle);
  });
  assert.equal(tops[0], tops[1], 'the field and its button are on one line');
  await field.fill(service.key);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('Weights in use').waitFor();
  await page.getByText(`key …${service.key.slice(-4)}`).waitFor();
  await page.reload();
  await page.getByText('Weights in use').waitFor();
  assert.equal(await page.evaluate('localStorage.length'), 0);
  const other = await context.newPage();
  await other.goto(url);
  await other.getByLabel('API key').waitFor();
  await context.close();
});

test('works with a short-lived token instead of a key, also with one for short recordings alone', async () => {
  for (const scope of ['all', 'discrete']) {
    const { token } = (
      await service.app.inject({
        method: 'POST',
        url: '/v1/tokens',
        headers: { 'x-api-key': service.key },
        payload: { scope },
      })
    ).json();
    const { page, context } = await openPage(browser, url);
    await page.getByLabel('API key or token').fill(token);
    await page.getByRole('button', { name: 'Use this key' }).click();
    await page.getByText(`token …${token.slice(-4)}`).waitFor();
    await choose(page, voice('sad-1028.wav'));
    await page.locator('.bars li').first().waitFor();
    assert.deepEqual(await page.getByRole('alert').allTextContents(), [], scope);
    await context.close();
  }
});

test('a token that expires while the page is open is asked for again, and nothing is lost', async () => {
  const { authenticator, tokens } = service.services;
  const caller = await authenticator.authenticate(service.key);
  assert.ok(caller);
  const { token, expires_at } = tokens.issue(caller, { scope: 'all', seconds: 3 });
  const { page, context } = await openPage(browser, url);
  const field = page.getByLabel('API key or token');
  const use = page.getByRole('button', { name: 'Use this key' });
  await field.fill(token);
  await use.click();
  await page.getByText('Weights in use').waitFor();
  await eventually(async () => Date.now() > Date.parse(expires_at));
  await choose(page, voice('sad-1028.wav'));
  await page.getByRole('alert').getByText('This token has expired').first().waitFor();
  await field.fill(service.key);
  await use.click();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.bars li').first().waitFor();
  await context.close();
});

test('a link with another key asks before it replaces the key in use', async () => {
  const { key } = await service.stores.keys.create('other');
  const { page, context } = await openPage(browser, link);
  await page.getByText('Weights in use').waitFor();
  assert.equal(page.url(), `${url}/`, 'the key is removed from the address bar');
  const inUse = (of: string) =>
    page
      .locator('.inuse')
      .getByText(`key …${of.slice(-4)}`)
      .waitFor();
  await page.goto(`${url}/#key=${key}`);
  await page.getByRole('dialog').getByText('another key').waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);
  await page.getByRole('button', { name: 'Keep key' }).click();
  await inUse(service.key);
  await page.goto(`${url}/#key=${key}`);
  await page.getByRole('button', { name: 'Use key' }).click();
  await inUse(key);
  await context.close();
});

test('a server that does not answer is named, and the work can be tried again', async () => {
  const { page, context } = await openPage(browser, link);
  await page.getByText('Weights in use').waitFor();
  await context.setOffline(true);
  await choose(page, voice('sad-1028.wav'));
  const alert = page.getByRole('alert');
  await alert.getByText('The server does not answer. Is it still running?').waitFor();
  await context.setOffline(false);
  await alert.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.bars li').first().waitFor();
  assert.equal(await alert.count(), 0);
  await context.close();
});

test('errors speak of files', async () => {
  const { page, context } = await openPage(browser, link);
  await choose(page, wav('nonsense.wav', Buffer.from('not a recording')));
  await page.getByRole('alert').getByText('This server cannot read this format.').waitFor();
  await choose(page, wav('damaged.wav', silentWav(6).subarray(0, 30)));
  await page.getByRole('alert').getByText('This is not an audio file we can read.').waitFor();
  await choose(page, wav('short.wav', silentWav(2.5)));
  await page.getByText('This file is 2.5 s long. A recording needs at least 4 seconds.').waitFor();
  await context.close();
});

test('the microphone is classified live: clock, pause, and a recording that is as long as its timeline', async () => {
  const { page, context, problems } = await openPage(browser, link, PHONE);
  await page.getByRole('button', { name: 'Microphone' }).click();
  const clock = page.locator('.clock');
  await page.locator('tbody tr').first().waitFor();
  assert.notEqual(await clock.textContent(), '00:00');
  const [pause, stop] = [
    page.getByRole('button', { name: 'Pause' }),
    page.getByRole('button', { name: 'Stop' }),
  ];
  const [a, b] = [await pause.boundingBox(), await stop.boundingBox()];
  const isLevel = a && b && Math.abs(a.y + a.height / 2 - b.y - b.height / 2) < 2;
  assert.ok(a && b && b.x - (a.x + a.width) < 20 && isLevel, 'Stop is beside Pause');
  // The level is 0 between words.
  while ((await numberOf(page.locator('meter'), 'value')) === 0) await page.waitForTimeout(50);
  await pause.click();
  await page.getByText('Paused').waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);
  const [leaving] = await Promise.all([
    page.waitForEvent('dialog'),
    page.evaluate('setTimeout(() => location.reload())'),
  ]);
  assert.equal(leaving.type(), 'beforeunload', 'a reload would lose the recording: the browser asks');
  await leaving.dismiss();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByLabel('Keep the recording').check();
  await stop.click();
  await page.getByRole('button', { name: 'WAV' }).waitFor();
  const facts = (await page.locator('.opened .note').textContent()) ?? '';
  const shown = Number(/([\d.]+) s/.exec(facts)?.[1]);
  const kept = await numberOf(page.locator('audio'), 'duration');
  assert.ok(shown > 4 && Math.abs(kept - shown) < 0.15, `${kept} s of sound, ${shown} s of timeline`);
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

test('on a phone a tap leads to the answer', async () => {
  const { page, context } = await openPage(browser, link, PHONE);
  await page.getByRole('button', { name: 'happy-1039' }).click();
  await page.locator('.bars li').first().waitFor();
  const { y = -1, height = 0 } = (await page.locator('.headline').boundingBox()) ?? {};
  assert.ok(y >= 0 && y + height < 844 - 60, `the answer is on the screen: ${y} to ${y + height}`);
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'happy-1039.wav');
  await context.close();
});

test('the model card and the privacy page have the margins of the others', async () => {
  const { page, context, problems } = await openPage(browser, url, {
    viewport: { width: 1440, height: 900 },
  });
  for (const name of ['model-card.html', 'privacy.html']) {
    await page.goto(`${url}/page/${name}`);
    const { x = 0, width = 0 } = (await page.getByRole('main').boundingBox()) ?? {};
    assert.ok(Math.abs(x - (1440 - x - width)) < 20 && x > 100, `centred: ${x}, ${width}`);
    assert.deepEqual(await accessibilityProblems(page), []);
  }
  assert.deepEqual(problems, []);
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
