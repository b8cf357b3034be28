// Results in a real browser: timelines, calls, many files, labels, and what survives a reload.
import assert from 'node:assert/strict';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Emotion } from '@undertone/contract';
import { tempDir, testApp } from '@undertone/testing/app';
import { VOICES } from '@undertone/testing/paths';
import { oneSidedCall, stereoCall, talkWav } from '@undertone/testing/talk';
import { longWav, silentWav } from '@undertone/testing/wav';
import type { Page } from 'playwright-core';
import {
  accessibilityProblems,
  choose,
  eventually,
  numberOf,
  openPage,
  savedBy,
  startBrowser,
  wav,
} from './support/browser.ts';
import { step } from './support/steps.ts';

const service = await testApp();
service.services.worker.start();
after(() => service.services.worker.stop());
const { url } = await service.listen();
const browser = await startBrowser();
const link = `${url}/#key=${service.key}`;
const voice = (name: string) => join(VOICES, name);
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const requestsOnServer = async () =>
  (await service.app.inject({ url: '/v1/asynch/requests', headers: { 'x-api-key': service.key } })).json()
    .requests as { request_id: string; label: string; status: string }[];

/** Opens the page with results as a reload would, so that any result can be shown without analysing a recording. */
async function openWith(results: object[], options: Parameters<typeof openPage>[2] = {}) {
  const opened = await openPage(browser, link, options);
  await opened.page.getByText('Weights in use').waitFor();
  const text = JSON.stringify(JSON.stringify(results));
  await opened.page.evaluate(
    `addEventListener('pagehide', () => sessionStorage.setItem('undertone-results', ${text}))`,
  );
  await opened.page.reload();
  return opened;
}

const resultOf = (steps: object[], seconds: number) => ({
  ...{ from: 'stream', model: '4emotions', seconds, channels: 1, steps, answer: {} },
});
const saved = (name: string, steps: object[], seconds: number, truth?: Emotion) => ({
  ...{ name, path: name, model: '4emotions', result: resultOf(steps, seconds), truth },
});

test('a short recording shows bars and a table, can be saved, and no double click deletes it', async () => {
  const { page, context, problems } = await openPage(browser, link);
  await choose(page, voice('angry-1013.wav'));
  const card = page.getByRole('article');
  await card.getByRole('table').waitFor();
  const [time, emotion = '', confidence = ''] = await card.getByRole('cell').allTextContents();
  assert.equal(time, '00:00–00:05');
  assert.match(emotion, /angry$/);
  assert.match(confidence, /^\d+\.\d %$/);
  assert.equal(await card.locator('.bars li').count(), 4);
  const csv = await savedBy(page, () => button(page, 'CSV').click());
  assert.equal(csv.name, 'angry-1013.csv');
  assert.match(csv.text, /^t,seconds,emotion,confidence,.*\n00:00,0,angry,/);
  const json = await savedBy(page, () => button(page, 'JSON').click());
  assert.equal(JSON.parse(json.text).main_emotion, 'angry');

  const compare = button(page, 'Compare models');
  await compare.dblclick();
  assert.equal(await compare.getAttribute('aria-expanded'), 'false', 'opened and closed again');
  await compare.click();
  await card
    .locator('.comparison .bars li')
    .nth(4 + 5 + 7 - 1)
    .waitFor();
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Compare models');
  assert.deepEqual(await accessibilityProblems(page), []);
  await button(page, 'Close').dblclick();
  await page.getByRole('dialog').getByText('stored nowhere else').waitFor();
  await button(page, 'Cancel').click();
  await card.waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test('unsure answers are grey, silence is empty, and the height is the confidence', async () => {
  const steps = [
    step(0, 'angry', 0.95),
    step(5, 'angry', 0.6),
    step(10, 'happy', 0.3),
    step(15, 'sad', 0.9, { speech_seconds: 0 }),
  ];
  const { page, context } = await openWith([saved('mixed.wav', steps, 20)]);
  await page.getByText('mostly angry, 50 % of the time').waitFor();
  assert.deepEqual(await page.locator('.legend li').allTextContents(), [
    'Aangry 50 %',
    '?unsure 25 %',
    'no speech 25 %',
  ]);
  const columnAt = (share: number) =>
    page.locator('.picture canvas').evaluate((canvas, at) => {
      const { width, height, getContext } = canvas as unknown as {
        width: number;
        height: number;
        getContext: (kind: string) => { getImageData: (...box: number[]) => { data: number[] } };
      };
      const { data } = getContext.call(canvas, '2d').getImageData(Math.round(at * width), 0, 1, height);
      // The strip without its base line and without the axis below.
      const rows = Array.from({ length: 44 }, (_, y) => data.slice(4 * y, 4 * y + 4));
      const painted = rows.filter(([, , , alpha = 0]) => alpha > 0);
      return { height: painted.length, colour: [...(painted[0] ?? [])] };
    }, share);
  const [sure, lower, unsure, silent] = await Promise.all([0.03, 0.27, 0.52, 0.9].map(columnAt));
  assert.ok((sure?.height ?? 0) > (lower?.height ?? 0) + 10, 'more confident is higher');
  const [red = 0, green = 0] = sure?.colour ?? [];
  assert.ok(red > green + 60, 'angry is red');
  const [r = 0, g = 0, b = 0] = unsure?.colour ?? [];
  assert.ok(unsure && unsure.height < 20 && Math.max(r, g, b) - Math.min(r, g, b) < 30, 'unsure is grey');
  assert.equal(silent?.height, 0, 'silence is empty');
  await context.close();

  const other = await openPage(browser, link);
  await choose(other.page, wav('silence.wav', silentWav(8)));
  await other.page.locator('.headline', { hasText: 'no speech' }).waitFor();
  assert.equal(await other.page.locator('.bars li').count(), 0);
  await other.context.close();
});

test('a long recording is a timeline of segments: click, keys, zoom, search, filter and curves', async () => {
  const { page, context, problems } = await openPage(browser, link, { colorScheme: 'dark' });
  await choose(page, wav('talk.wav', talkWav(62)));
  const rows = page.locator('.rows tbody tr');
  await rows.first().waitFor();
  const texts = await rows.allTextContents();
  assert.ok(texts.length < 13, `${texts.length} segments of 13 steps`);
  const audio = page.locator('audio');

  await rows.nth(1).click();
  const [start = ''] = /\d\d:\d\d/.exec(texts[1] ?? '') ?? [];
  const at = await numberOf(audio, 'currentTime');
  assert.ok(Math.abs(at - Number(start.slice(3))) < 2, `plays from ${at}, row ${start}`);
  await page.locator('tr[aria-current]').filter({ hasText: start }).waitFor();

  const line = page.getByRole('slider');
  const { width = 0 } = (await line.boundingBox()) ?? {};
  await line.click({ position: { x: width * 0.5, y: 20 } });
  const middle = await numberOf(audio, 'currentTime');
  assert.ok(middle > 30 && middle < 34, `plays from ${middle}`);
  await page.keyboard.press('Home');
  await page.locator('.readout', { hasText: '00:00' }).waitFor();

  assert.equal(await page.locator('.window').count(), 0);
  await line.hover({ position: { x: width * 0.25, y: 20 } });
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -120);
  await page.keyboard.up('Control');
  const window = page.locator('.window');
  await window.waitFor();
  const left = () => window.evaluate((it) => (it as unknown as { offsetLeft: number }).offsetLeft);
  const before = await left();
  await page.mouse.wheel(80, 0);
  await eventually(async () => (await left()) > before);
  const panned = await left();
  await line.focus();
  await page.keyboard.press('Shift+ArrowRight');
  await eventually(async () => (await left()) > panned);
  await page.keyboard.press('0');
  await window.waitFor({ state: 'detached' });
  await page.keyboard.press('+');
  await window.waitFor();
  await button(page, 'All').click();

  await page.getByLabel('Emotion to find').selectOption('sad');
  await page.getByLabel('Confidence from').selectOption('0.6');
  await button(page, 'Next sad').click();
  await page.locator('tr[aria-current]', { hasText: 'sad' }).waitFor();
  await page.getByRole('status').filter({ hasText: 'sad at 00:' }).waitFor();
  await page.keyboard.press('n');
  await button(page, 'sad').click();
  for (const text of await rows.allTextContents()) assert.match(text, /sad/);
  await button(page, 'sad').click();
  const { height: low = 0 } = (await line.boundingBox()) ?? {};
  await button(page, 'Probability curves').click();
  await eventually(async () => ((await line.boundingBox())?.height ?? 0) > low + 50);

  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('Keyboard shortcuts').waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);
  await page.getByLabel('Shortcuts are on').uncheck();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await line.focus();
  await page.keyboard.press('+');
  assert.equal(await window.count(), 0, 'shortcuts can be turned off');

  const srt = await savedBy(page, () => button(page, 'SRT').click());
  assert.match(srt.text, /^1\n00:00:00,000 --> 00:00:05,000\n\w+/);
  const png = await savedBy(page, () => button(page, 'PNG').click());
  assert.match(png.text, /PNG/);
  assert.deepEqual(await accessibilityProblems(page), []);
  assert.deepEqual(problems, []);
  await context.close();
});

test('fingers zoom and pan a timeline', async () => {
  const steps = Array.from({ length: 240 }, (_, i) => step(5 * i, i % 3 === 0 ? 'sad' : 'angry'));
  const { page, context } = await openWith([saved('long.wav', steps, 1200)], { hasTouch: true });
  const { x = 0, y = 0, width = 0 } = (await page.getByRole('slider').boundingBox()) ?? {};
  const touch = await context.newCDPSession(page);
  const fingers = async (type: 'touchStart' | 'touchMove' | 'touchEnd', ...shares: number[]) => {
    const touchPoints = shares.map((share, id) => ({ id, x: x + share * width, y: y + 20 }));
    await touch.send('Input.dispatchTouchEvent', { type, touchPoints });
  };
  await fingers('touchStart', 0.4, 0.6);
  await fingers('touchMove', 0.3, 0.7);
  await fingers('touchMove', 0.1, 0.9);
  await fingers('touchEnd');
  const window = page.locator('.window');
  await window.waitFor();
  const widths = () => window.evaluate((it) => (it as unknown as { offsetWidth: number }).offsetWidth);
  const left = () => window.evaluate((it) => (it as unknown as { offsetLeft: number }).offsetLeft);
  assert.ok((await widths()) < width / 2, 'a pinch zooms in');
  const before = await left();
  await fingers('touchStart', 0.7);
  await fingers('touchMove', 0.5);
  await fingers('touchMove', 0.3);
  await fingers('touchEnd');
  await eventually(async () => (await left()) > before);
  await context.close();
});

test('a call has a headline and averages per channel, and names that stay, also if it is short', async () => {
  const { page, context } = await openPage(browser, link);
  await choose(page, wav('call.wav', oneSidedCall(talkWav(15))));
  const caller = page.locator('.headline').nth(1);
  await caller.getByText('no speech all the time').waitFor();
  await page.getByLabel('Name of channel 1').fill('Caller');
  await page.keyboard.press('Tab');
  await page.locator('.rows tr', { hasText: 'Caller' }).first().waitFor();
  await page.getByText('Average probabilities').first().click();
  assert.equal(await page.locator('.headline').first().locator('.bars li').count(), 4);
  await page.reload();
  await page.locator('.rows tr', { hasText: 'Caller' }).first().waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);

  // Short: two requests, one per channel.
  const sides = stereoCall(talkWav(6), silentWav(6));
  await choose(page, wav('short-call.wav', sides));
  await page.locator('#opened', { hasText: 'short-call.wav' }).waitFor();
  await page.locator('.headline').nth(1).getByText('no speech').waitFor();
  assert.match((await page.locator('.headline').first().locator('.summary').textContent()) ?? '', /angry/);
  assert.match((await page.locator('.opened .note').textContent()) ?? '', /^stereo, 6\.0 s/);
  await context.close();
});

test('cancel deletes what was sent', async () => {
  const { page, context } = await openPage(browser, link);
  // Slow enough to be cancelled in the middle.
  const network = await context.newCDPSession(page);
  const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 2_000_000 };
  await network.send('Network.emulateNetworkConditions', slow);
  await choose(page, wav('cancelled.wav', longWav(400)));
  await page.locator('.progress', { hasText: 'Uploading' }).waitFor();
  assert.ok((await requestsOnServer()).some(({ label }) => label === 'cancelled.wav'));
  await button(page, 'Cancel').click();
  await page.getByRole('article').waitFor({ state: 'detached' });
  assert.ok(!(await requestsOnServer()).some(({ label }) => label === 'cancelled.wav'));
  await context.close();
});

test('what the server has is listed, opened, shared and deleted, and a reload loses nothing', async () => {
  const { page, context, problems } = await openPage(browser, link);
  await choose(page, wav('kept.wav', talkWav(12)));
  await page.locator('.rows tr').first().waitFor();
  await choose(page, voice('sad-1028.wav'));
  await page.locator('.bars li').first().waitFor();
  await page.reload();
  const table = page.locator('.files tbody tr');
  await table.nth(1).waitFor();
  await table.filter({ hasText: 'kept.wav' }).getByText('00:12').waitFor();
  await table
    .filter({ hasText: 'sad-1028.wav' })
    .getByText(/^00:0[3-6]$/)
    .waitFor();

  await button(page, 'kept.wav').click();
  await button(page, 'Share link').click();
  const shared = await page.getByLabel('Link to this result').inputValue();
  assert.match(shared, /#request=[0-9a-f-]{36}$/);
  await page.reload();
  await page.locator('.item', { hasText: 'kept.wav' }).click();
  await button(page, 'Close').click();
  const stored = page.getByRole('region', { name: 'On the server' }).getByRole('listitem');
  const mine = stored.filter({ hasText: 'kept.wav' });
  await mine.getByText('24 h left').waitFor();
  await mine.getByRole('button', { name: 'kept.wav' }).first().click();
  await page.locator('.rows tr').first().waitFor();

  const other = await openPage(browser, shared);
  await other.page.getByLabel('API key or token').fill(service.key);
  await button(other.page, 'Use this key').click();
  await other.page.locator('.rows tr').first().waitFor();
  assert.equal(await other.page.locator('#opened').textContent(), 'kept.wav', 'with its name');
  await other.context.close();

  await button(page, 'Delete from the server').dblclick();
  await page.getByRole('dialog').getByText('This cannot be undone').waitFor();
  await button(page, 'Cancel').click();
  assert.ok((await requestsOnServer()).some(({ label }) => label === 'kept.wav'));
  await context.setOffline(true);
  await button(page, 'Delete from the server').click();
  await button(page, 'Delete').click();
  await page.getByRole('alert').getByText('The server does not answer').waitFor();
  await context.setOffline(false);
  await button(page, 'Try again').click();
  await page.locator('#opened').waitFor({ state: 'detached' });
  assert.ok(!(await requestsOnServer()).some(({ label }) => label === 'kept.wav'));
  assert.notEqual(await page.evaluate('document.activeElement.tagName'), 'BODY', 'the focus is not lost');
  // The browser logs requests without a network in its console.
  assert.deepEqual(
    problems.filter((text) => !text.includes('INTERNET_DISCONNECTED')),
    [],
  );
  await context.close();
});

test('a folder named by emotion becomes a table with a confusion matrix, sorted, saved and closed', async () => {
  const folder = await tempDir();
  for (const name of ['angry-1013', 'angry-1028', 'happy-1039', 'sad-1016']) {
    const inside = join(folder, name.split('-')[0] ?? '');
    await mkdir(inside, { recursive: true });
    await copyFile(voice(`${name}.wav`), join(inside, `${name}.wav`));
  }
  const { page, context, problems } = await openPage(browser, link);
  await page.getByLabel('Choose a folder').setInputFiles(folder);
  await page.getByText('All done').waitFor();
  const files = page.locator('.files tbody tr');
  assert.equal(await files.count(), 4);
  const matrix = page.getByRole('region', { name: 'Confusion matrix of 4emotions' });
  const angry = matrix.getByRole('row', { name: /^angry \(/ });
  assert.deepEqual(await angry.getByRole('cell').allTextContents(), ['100', '·', '·', '·']);
  await matrix.getByText('UAR').waitFor();
  await button(page, 'Emotion').click();
  await button(page, 'Emotion ▼').or(button(page, 'Emotion')).click();
  assert.match((await files.first().textContent()) ?? '', /sad-1016/);
  const csv = await savedBy(page, () => button(page, 'All as CSV').click());
  assert.match(csv.text, /^path,label,seconds,emotion,confidence,share angry/);
  assert.equal(csv.text.trim().split('\n').length, 5);
  const json = await savedBy(page, () => button(page, 'All as JSON').click());
  assert.equal(JSON.parse(json.text).length, 4);
  assert.deepEqual(await accessibilityProblems(page), []);

  await files.filter({ hasText: 'happy-1039' }).getByRole('button').click();
  await page.locator('.bars li').first().waitFor();
  await page.getByLabel('Compare with').selectOption({ index: 1 });
  assert.equal(await page.locator('.second section').count(), 2, 'two recordings on one axis');
  assert.deepEqual(await accessibilityProblems(page), []);
  await button(page, 'All 4 in a table').click();
  await button(page, 'Close all').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Close all' }).click();
  await page.getByText('Choose a recording').waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test('a CSV labels recordings that are already on the page', async () => {
  const { page, context } = await openPage(browser, link);
  await choose(page, voice('sad-1016.wav'));
  await page.locator('.bars li').first().waitFor();
  const buffer = Buffer.from('path,emotion\nsad-1016.wav,sadness\n');
  await choose(page, { name: 'labels.csv', mimeType: 'text/csv', buffer });
  await page
    .getByRole('region', { name: 'Confusion matrix' })
    .getByRole('row', { name: /^sad \(/ })
    .waitFor();
  await context.close();
});

test('five hundred results stay quick', async () => {
  const emotions = ['angry', 'happy', 'neutral', 'sad'] as const;
  const many = Array.from({ length: 500 }, (_, i) =>
    saved(`file-${i}.wav`, [step(0, emotions[i % 4] ?? 'sad', 0.5 + (i % 50) / 100)], 5),
  );
  const { page, context } = await openWith(many);
  await page.locator('.files tbody tr').nth(499).waitFor();
  const took = (await page.evaluate(`new Promise((resolve) => {
    const started = performance.now();
    [...document.querySelectorAll('.sort')].find((it) => it.textContent.startsWith('Confidence')).click();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
  })`)) as number;
  assert.ok(took < 1_000, `sorting took ${took} ms`);
  assert.equal(
    await page
      .getByRole('region', { name: /^Recordings/ })
      .locator('.item')
      .count(),
    9,
    'the list beside it stays short',
  );
  await context.close();
});
