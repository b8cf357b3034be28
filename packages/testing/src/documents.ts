import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './paths.ts';

export const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'docs/OPERATIONS.md',
  'docs/ARCHITECTURE.md',
  'docs/COMPARISON.md',
  'docs/LONG_RECORDINGS.md',
  'docs/MIGRATING.md',
  'docs/MODEL_CARD.md',
  'docs/PRIVACY.md',
  'docs/RELEASING.md',
  'docs/SCALING.md',
  'SECURITY.md',
  'examples/README.md',
  'examples/telephone/README.md',
];

/** A fenced code block: ```LANGUAGE MARK */
export interface Block {
  readonly document: string;
  readonly line: number;
  readonly language: string;
  readonly mark: string;
  readonly text: string;
}

export function readDocument(document: string): string {
  return readFileSync(join(ROOT, document), 'utf8');
}

export function blocksOf(document: string): Block[] {
  const blocks: Block[] = [];
  const lines = readDocument(document).split('\n');
  for (let line = 0; line < lines.length; line++) {
    const [, language, mark = ''] = /^```(\w+) ?([\w-]*)$/.exec(lines[line] ?? '') ?? [];
    if (language === undefined) continue;
    const end = lines.indexOf('```', line);
    blocks.push({ document, line: line + 1, language, mark, text: lines.slice(line + 1, end).join('\n') });
    line = end;
  }
  return blocks;
}

/** Table rows whose first cell is code: that cell and the rest of the row. */
export function codeRows(document: string): Map<string, string> {
  const rows = readDocument(document).matchAll(/^\| `([^`]+)` \|(.*)\|$/gm);
  return new Map([...rows].map(([, name = '', rest = '']) => [name, rest.trim()]));
}
