// The links of all Markdown files, without a network. `make docs` checks those of the built pages again.
import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '@undertone/testing/paths';
import { marked, type Token } from 'marked';

const FOLDERS = ['.github', 'bench', 'clients', 'deploy', 'docs', 'examples', 'packages', 'training'];
const documents = globSync(['*.md', ...FOLDERS.map((folder) => `${folder}/**/*.md`)], {
  cwd: ROOT,
  exclude: ['**/node_modules/**', '**/.venv/**', '**/dist*/**', '**/.pytest_cache/**'],
});
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function tokensOf(markdown: string): Token[] {
  const tokens: Token[] = [];
  marked.walkTokens(marked.lexer(markdown), (token) => {
    tokens.push(token);
  });
  return tokens;
}

/** Without bare addresses such as http://HOST:PORT in a sentence. */
function linksOf(document: string): string[] {
  return tokensOf(read(document)).flatMap((token) =>
    (token.type === 'link' || token.type === 'image') && /^[<[!]/.test(token.raw)
      ? [String(token['href'])]
      : [],
  );
}

/** The anchors of the headings, as forges and the site make them. */
function anchorsOf(markdown: string): string[] {
  const anchors: string[] = [];
  for (const token of tokensOf(markdown)) {
    if (token.type !== 'heading') continue;
    const words = String(token['text']).toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
    const earlier = anchors.filter((anchor) => anchor.replace(/-\d+$/, '') === slug).length;
    anchors.push(earlier === 0 ? slug : `${slug}-${earlier}`);
  }
  return anchors;
}

/** What is wrong with a link, if anything. */
function problemOf(document: string, href: string): string | undefined {
  if (/^\w+:/.test(href)) {
    if (!URL.canParse(href)) return 'is no address';
    const { protocol, hostname } = new URL(href);
    const local = ['localhost', '127.0.0.1'].includes(hostname);
    return protocol === 'https:' || (protocol === 'http:' && local) ? undefined : 'is not https';
  }
  const [path = '', anchor] = href.split('#');
  const target = path === '' ? document : join(dirname(document), decodeURI(path));
  if (target.startsWith('..') || !existsSync(join(ROOT, target))) return 'does not exist';
  if (anchor === undefined) return undefined;
  return target.endsWith('.md') && anchorsOf(read(target)).includes(anchor)
    ? undefined
    : 'has no such anchor';
}

test('every link in a Markdown file leads somewhere', () => {
  const links = documents.flatMap((document) => linksOf(document).map((href) => ({ document, href })));
  assert.ok(documents.length > 30 && links.length > 100, `${documents.length} files, ${links.length} links`);
  const wrong = links.flatMap(({ document, href }) => {
    const problem = problemOf(document, href);
    return problem === undefined ? [] : [`${document}: ${href} ${problem}`];
  });
  assert.deepEqual(wrong, []);
});

test('the check finds what it is for', () => {
  for (const href of [
    'docs/MISSING.md',
    'docs/OPERATIONS.md#no-such-heading',
    '#no-such-heading',
    '../outside.md',
    'docs#anchor',
    'http://example.org',
  ])
    assert.ok(problemOf('README.md', href), href);
  assert.equal(problemOf('README.md', 'docs/OPERATIONS.md#audit-log'), undefined);
  assert.deepEqual(anchorsOf('# A `b_c`, d!\n## Same\n## Same\n```\n# no heading\n```\n'), [
    'a-b_c-d',
    'same',
    'same-1',
  ]);
});

test('docs/README.md and the site have every document, in the same order', () => {
  const listed = linksOf('docs/README.md').map((href) => join('docs', href));
  for (const name of readdirSync(join(ROOT, 'docs')).filter((name) => /\.(md|json|yaml)$/.test(name))) {
    if (name !== 'README.md') assert.ok(listed.includes(`docs/${name}`), name);
  }
  const nav = [...read('packages/site/mkdocs.yml').matchAll(/^ +- .*: (\S+\.md)$/gm)].map(([, path]) => path);
  assert.deepEqual(
    nav.filter((path) => path !== 'docs/README.md'),
    // The site shows the OpenAPI document as a page, and the AsyncAPI document as it is.
    listed
      .filter((path) => path !== 'docs/asyncapi.yaml')
      .map((path) => (path === 'docs/openapi.json' ? 'docs/api.md' : path)),
  );
});
