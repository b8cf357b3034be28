// Builds dist/, which the server serves at `/` and under `/page/`: the app, its style and icon, the example voices, and the
// documents that the page links to. It takes less than a second and runs with every install.
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { MICROPHONE_WORKLET } from '@undertone/sdk';
import { build } from 'esbuild';
import { Marked } from 'marked';

const here = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));
const dist = `${here}dist`;
// Built next to it and then renamed, so that a starting server never sees half of it.
const fresh = `${here}dist-${process.pid}`;

const DOCUMENTS = { 'MODEL_CARD.md': 'model-card.html', 'PRIVACY.md': 'privacy.html' };

await mkdir(`${fresh}/examples`, { recursive: true });
const voices = (await readdir(`${root}examples/voices`)).filter((name) => name.endsWith('.wav')).sort();
await Promise.all([
  build({
    entryPoints: { app: `${here}src/app.tsx`, docs: `${here}src/docs.ts`, style: `${here}style.css` },
    outdir: fresh,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    define: { EXAMPLES: JSON.stringify(voices) },
    legalComments: 'none',
    logLevel: 'warning',
  }),
  writeFile(`${fresh}/microphone-worklet.js`, MICROPHONE_WORKLET),
  ...['index.html', 'icon.svg'].map((name) => cp(here + name, `${fresh}/${name}`)),
  ...voices.map((name) => cp(`${root}examples/voices/${name}`, `${fresh}/examples/${name}`)),
  cp(`${root}docs/model-card`, `${fresh}/model-card`, {
    recursive: true,
    filter: (path) => !path.endsWith('.md'),
  }),
  ...Object.entries(DOCUMENTS).map(async ([source, target]) =>
    writeFile(`${fresh}/${target}`, asPage(await readFile(`${root}docs/${source}`, 'utf8'))),
  ),
]);
await rm(dist, { recursive: true, force: true });
await rename(fresh, dist);

function asPage(markdown: string): string {
  const marked = new Marked({
    renderer: {
      // Other files of the repository are not served, so links to them become plain text.
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = DOCUMENTS[href as keyof typeof DOCUMENTS] ?? href;
        return /^(https?:|#)|\.html$/.test(target) ? `<a href="${target}">${text}</a>` : text;
      },
    },
  });
  const title = /^# (.*)$/m.exec(markdown)?.[1] ?? 'Undertone';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}, Undertone</title><link rel="icon" href="/page/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/page/style.css"></head>
<body><header><nav aria-label="Undertone"><a href="/">Undertone</a><a href="/docs">API</a></nav></header>
<main class="document card">${marked.parse(markdown)}</main></body></html>
`;
}
