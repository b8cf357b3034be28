// Where the version is written. The package.json of the workspace has it; everything else follows it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file, and a pattern whose first group is the version. */
export type Place = readonly [file: string, pattern: RegExp];

export const WORKSPACE: Place = ['package.json', /^ {2}"version": "(.*)"/dm];

export function placesOf(root: string): Place[] {
  const packages = readdirSync(join(root, 'packages'));
  return [
    WORKSPACE,
    ...packages.map((name): Place => [`packages/${name}/package.json`, /^ {2}"version": "(.*)"/dm]),
    ['package-lock.json', /^ {2}"version": "(.*)"/dm],
    ['package-lock.json', /^ {4}"": \{\n.*\n {6}"version": "(.*)"/dm],
    ...packages.map((name): Place => {
      const entry = `^ {4}"packages/${name}": \\{\\n.*\\n {6}"version": "(.*)"`;
      return ['package-lock.json', new RegExp(entry, 'dm')];
    }),
    ['docs/openapi.json', /^ {4}"version": "(.*)"/dm],
    ['docs/asyncapi.yaml', /^ {2}version: (.*)$/dm],
    ['clients/python/src/undertone_client/_version.py', /^__version__ = "(.*)"/dm],
    ['deploy/Dockerfile', /org\.opencontainers\.image\.version="(.*)"/d],
    ['deploy/kubernetes/Chart.yaml', /^version: (.*)$/dm],
    ['deploy/kubernetes/Chart.yaml', /^appVersion: (.*)$/dm],
    ['deploy/kubernetes/kustomization.yaml', /^ {4}newTag: (.*)$/dm],
  ];
}

export function readVersion(root: string, [file, pattern]: Place): string {
  return find(readFileSync(join(root, file), 'utf8'), [file, pattern]).version;
}

export function writeVersion(root: string, [file, pattern]: Place, version: string): void {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  const { start, end } = find(text, [file, pattern]);
  writeFileSync(path, text.slice(0, start) + version + text.slice(end));
}

function find(text: string, [file, pattern]: Place): { version: string; start: number; end: number } {
  const found = pattern.exec(text);
  const [start, end] = found?.indices?.[1] ?? [];
  if (start === undefined || end === undefined) throw new Error(`${file} has no version (${pattern})`);
  return { version: text.slice(start, end), start, end };
}
