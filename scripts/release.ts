// `make release VERSION=x.y.z`: writes the version everywhere, gives the changelog's "Unreleased" section its number and date, and
// prints what a person does next. It commits and publishes nothing.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { placesOf, readVersion, WORKSPACE, writeVersion } from './versions.ts';

const root = join(import.meta.dirname, '..');
const version = process.argv[2] ?? '';

const places = placesOf(root);
const current = readVersion(root, WORKSPACE);
if (!/^\d+\.\d+\.\d+$/.test(version))
  fail(`VERSION must look like 1.2.3. The current version is ${current}.`);
if (!isNewer(version, current)) fail(`${version} is not newer than ${current}, the current version.`);

const changelog = join(root, 'CHANGELOG.md');
const text = readFileSync(changelog, 'utf8');
const [heading = '', changes = ''] = /^## Unreleased.*\n((?:(?!## ).*\n)*)/m.exec(text) ?? [];
if (changes.trim() === '') fail('CHANGELOG.md has nothing under "## Unreleased".');

const today = new Date().toISOString().slice(0, 10);
writeFileSync(
  changelog,
  text.replace(heading, () => `## Unreleased\n\n## ${version} (${today})\n${changes}`),
);
for (const place of places) writeVersion(root, place, version);

const { homepage } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { homepage: string };
if (new URL(homepage).hostname.endsWith('example.org')) {
  console.log(
    `${homepage} is a placeholder. Put the real address of the repository into package.json and\n` +
      'clients/python/pyproject.toml before you publish.\n',
  );
}
console.log(`Version ${version} is in all ${places.length} places, and CHANGELOG.md has its section.

What to do next:
  git diff                          see what changed
  make test && make acceptance
  make package                      builds dist-packages/
  git commit --all --message 'Release ${version}'
  git tag --annotate v${version} --message 'Undertone ${version}'
  git push --follow-tags

Then publish, unless a workflow of the forge does it for the tag:
  npm publish dist-packages/undertone-${version}.tgz
  npm publish dist-packages/undertone-sdk-${version}.tgz
  python3 -m twine upload dist-packages/undertone_client-${version}*
  docker build --file deploy/Dockerfile --tag REGISTRY/undertone:${version} . && docker push REGISTRY/undertone:${version}`);

function isNewer(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const different = left.findIndex((number, i) => number !== right[i]);
  return different >= 0 && (left[different] ?? 0) > (right[different] ?? 0);
}

function fail(why: string): never {
  console.error(`make release: ${why}`);
  process.exit(1);
}
