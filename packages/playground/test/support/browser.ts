import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { talkWav } from '@undertone/testing/talk';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';

/** Debian's Chromium, which scripts/test-deps.sh installs, unless CHROMIUM is set. */
const { CHROMIUM = '/usr/bin/chromium' } = process.env;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A host name that resolves to this machine but is not localhost, so browsers treat it as insecure. */
export const INSECURE_HOST = 'undertone.test';

/** One browser for a test file, with a fake microphone that plays voices. */
export async function startBrowser(): Promise<Browser> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-browser-'));
  const microphone = join(folder, 'microphone.wav');
  await writeFile(microphone, talkWav(30));
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      // Chromium's sandbox does not work as root or in containers.
      ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      ...['--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream'],
      `--use-file-for-fake-audio-capture=${microphone}`,
      `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`,
    ],
  });
  after(async () => {
    await browser.close();
    await rm(folder, { recursive: true, force: true });
  });
  return browser;
}

export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Console errors, uncaught errors, and requests to other hosts. */
  readonly problems: string[];
}

/** Opens the page. `allowed` are other origins that it may use. */
export async function openPage(
  browser: Browser,
  url: string,
  { allowed = [], ...options }: { allowed?: readonly string[] } & Parameters<Browser['newContext']>[0] = {},
): Promise<OpenPage> {
  const context = await browser.newContext({ permissions: ['microphone'], ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    const own = [new URL(url).origin, ...allowed].includes(origin);
    if (!own && protocol !== 'blob:' && protocol !== 'data:') problems.push(`loaded ${request.url()}`);
  });
  await page.goto(url);
  return { page, context, problems };
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: { readonly html: string }[];
}

/** Serious and critical problems found by axe. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // Not as a script element, which the page's content security policy forbids.
  const violations = (await page.evaluate(
    `${AXE}; axe.run().then(({ violations }) => violations)`,
  )) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' | ')}`);
}

/** The file that a click downloads. */
export async function savedBy(
  page: Page,
  click: () => Promise<void>,
): Promise<{ name: string; text: string }> {
  const [download] = await Promise.all([page.waitForEvent('download'), click()]);
  const stream = await download.createReadStream();
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  await once(stream, 'end');
  return { name: download.suggestedFilename(), text: Buffer.concat(pieces).toString('utf8') };
}

type Chosen = Parameters<Locator['setInputFiles']>[0];

export async function choose(page: Page, files: Chosen): Promise<void> {
  await page.getByLabel('Choose files').setInputFiles(files);
}

export function wav(name: string, buffer: Buffer) {
  return { name, mimeType: 'audio/wav', buffer };
}

export function numberOf(element: Locator, name: string): Promise<number> {
  return element.evaluate(
    (it, property) => Number((it as unknown as Record<string, unknown>)[property]),
    name,
  );
}

/** The page's policy forbids `page.waitForFunction`, which evaluates text. */
export async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`It never happened: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
