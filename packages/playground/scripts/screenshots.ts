// Takes the screenshots in docs/page: `npx node packages/playground/scripts/screenshots.ts LINK`, with the link that the first
// start of a server prints.
import { mkdir, readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { VOICES } from '@undertone/testing/paths';
import { stereoCall, talkWav } from '@undertone/testing/talk';
import { silentWav } from '@undertone/testing/wav';
import { chromium } from 'playwright-core';

const [link = ''] = process.argv.slice(2);
const { CHROMIUM = '/usr/bin/chromium' } = process.env;
const folder = fileURLToPath(new URL('../../../docs/page/', import.meta.url));
await mkdir(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
const WIDE = { viewport: { width: 1440, height: 1000 } };
const WAV_HEADER_BYTES = 44;
const SECOND_BYTES = 32_000;
/** The caller begins later and in another mood. */
const caller = Buffer.concat([silentWav(12), talkWav(140).subarray(WAV_HEADER_BYTES + 33 * SECOND_BYTES)]);
caller.writeUInt32LE(caller.length - WAV_HEADER_BYTES, 40);
const call = { name: 'call-0412.wav', mimeType: 'audio/wav', buffer: stereoCall(talkWav(92), caller) };
const voices = (await readdir(VOICES)).filter((name) => name.endsWith('.wav'));
const labels = voices.map((name) => `${name},${name.split('-')[0]}\n`).join('');

for (const [name, options] of Object.entries({
  light: WIDE,
  dark: { ...WIDE, colorScheme: 'dark' as const },
  table: WIDE,
  phone: { viewport: { width: 390, height: 844 } },
})) {
  const page = await browser.newPage(options);
  await page.goto(link);
  await page.evaluate(`localStorage.setItem('undertone-channels', '["Agent", "Caller"]')`);
  await page.reload();
  const files = page.getByLabel('Choose files');
  if (name === 'phone') await page.getByRole('button', { name: 'happy-1039' }).click();
  else if (name !== 'table') await files.setInputFiles(call);
  else {
    const csv = { name: 'labels.csv', mimeType: 'text/csv', buffer: Buffer.from(`path,emotion\n${labels}`) };
    await files.setInputFiles(voices.map((voice) => `${VOICES}/${voice}`));
    await files.setInputFiles(csv);
    await page.getByText('All done').waitFor();
  }
  await page.getByRole('table').first().waitFor();
  if (name === 'light') await page.getByRole('button', { name: 'Probability curves' }).click();
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}${name}.png` });
  await page.close();
}
await browser.close();
