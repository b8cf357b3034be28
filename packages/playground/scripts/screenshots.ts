// Takes the screenshots in docs/page: `npx node packages/playground/scripts/screenshots.ts LINK`, with the link that the first
// start of a server prints.
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { talkWav } from '@undertone/testing/talk';
import { chromium } from 'playwright-core';

const [link = ''] = process.argv.slice(2);
const { CHROMIUM = '/usr/bin/chromium' } = process.env;
const folder = fileURLToPath(new URL('../../../docs/page/', import.meta.url));
await mkdir(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
const call = { name: 'call.wav', mimeType: 'audio/wav', buffer: talkWav(92) };
for (const [name, options] of Object.entries({
  light: { viewport: { width: 1000, height: 980 } },
  dark: { viewport: { width: 1000, height: 980 }, colorScheme: 'dark' as const },
  phone: { viewport: { width: 390, height: 844 } },
})) {
  const page = await browser.newPage(options);
  await page.goto(link);
  if (name === 'phone') await page.getByRole('button', { name: 'happy-' }).first().click();
  else await page.setInputFiles('input[type=file]', call);
  await page.getByRole('table').waitFor();
  if (name === 'phone') await page.getByRole('article').first().scrollIntoViewIfNeeded();
  await page.screenshot({ path: `${folder}${name}.png` });
}
await browser.close();
