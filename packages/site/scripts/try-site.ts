// Opens the built site from disk in a real browser: pages look as their Markdown says, search finds what is there, the diagram is
// drawn, and nothing is loaded from another host.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '@undertone/testing/paths';
import { marked } from 'marked';
import { chromium } from 'playwright-core';

const SITE = join(ROOT, 'dist-docs');
/** A word, and the page that must be among the results. */
const SEARCHES = [
  ['bubblewrap', 'SECURITY.html'],
  ['SERVICE_WEIGHTS', 'docs/OPERATIONS.html'],
  ['calibrated', 'docs/MODEL_CARD.html'],
  ['discrete/emotion', 'docs/api.html'],
  ['UndertoneQueueOld', 'docs/RUNBOOKS.html'],
] as const;

const nav = readFileSync(join(ROOT, 'packages/site/mkdocs.yml'), 'utf8').matchAll(/^ +- .*: (\S+\.md)$/gm);
const pages = [...nav].map(([, path = '']) => path);
const built = (path: string) =>
  join(dirname(path), path.replace(/^.*\//, '').replace('.md', '.html').replace('README', 'index'));

const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  // Chromium's sandbox does not work as root or in containers.
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
const page = await browser.newPage();
page.setDefaultTimeout(10_000);
const problems: string[] = [];
page.on('console', (message) => {
  if (message.type() === 'error') problems.push(message.text());
});
page.on('pageerror', (error) => problems.push(String(error)));
page.on('request', (request) => {
  if (!/^(file|blob|data|about):/.test(request.url())) problems.push(`loaded ${request.url()}`);
});
const open = (path: string) => page.goto(String(pathToFileURL(join(SITE, path))));

/** How many list items, code blocks, tables and headings there are. */
async function shapeOf(path: string): Promise<number[]> {
  await open(built(path));
  return Promise.all(
    ['li', 'pre, .mermaid', 'table:not(.highlighttable)', 'h2, h3'].map((selector) =>
      page.locator('article').locator(selector).count(),
    ),
  );
}

let compared = 0;
for (const path of pages) {
  assert.ok(existsSync(join(SITE, built(path))), `${built(path)} was not built`);
  if (!existsSync(join(ROOT, path))) continue;
  const html = await marked.parse(readFileSync(join(ROOT, path), 'utf8'));
  const expected = [/<li>/g, /<pre>/g, /<table>/g, /<h[23]>/g].map((tag) => html.match(tag)?.length ?? 0);
  assert.deepEqual(await shapeOf(path), expected, `${path}: list items, code blocks, tables, headings`);
  compared += 1;
}

for (const [word, target] of SEARCHES) {
  await open('index.html');
  const field = page.getByRole('textbox', { name: 'Search' });
  await field.click();
  await page.getByText('Type to start searching').waitFor();
  await field.pressSequentially(word);
  const result = page.locator(`.md-search-result__link[href*="${target}"]`).first();
  await result.click();
  await page.waitForURL((url) => url.protocol === 'file:' && url.pathname.endsWith(target));
}

await open('docs/ARCHITECTURE.html');
const diagram = page.locator('div.mermaid');
await diagram.waitFor();
const size = await diagram.boundingBox();
assert.ok(size !== null && size.height > 100, `the diagram is not drawn: ${JSON.stringify(size)}`);

await browser.close();
assert.deepEqual(problems, []);
console.log(
  `${pages.length} pages open from disk, ${compared} of them with the structure of their Markdown; ${SEARCHES.length} searches found their page; nothing was loaded from another host.`,
);
