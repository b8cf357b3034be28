import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { EMOTIONS, type Emotion } from '@undertone/contract';
import { UserError } from '../user-error.ts';

export interface Labelled {
  readonly file: string;
  readonly emotion: Emotion;
}

/** Names that other datasets use. */
const OTHER_NAMES: Record<string, Emotion> = {
  anger: 'angry',
  happiness: 'happy',
  joy: 'happy',
  calm: 'neutral',
  sadness: 'sad',
  fear: 'nervous',
  fearful: 'nervous',
  anxious: 'nervous',
  surprise: 'surprised',
  disgust: 'disgusted',
};

const HOW =
  'Put the recordings into folders named by emotion (angry, happy, neutral, sad, nervous, surprised, disgusted), or pass ' +
  'a CSV with the columns path and emotion.';

/** The recordings in a folder, labelled by their subfolders, or the recordings in a CSV. */
export async function findLabelled(path: string): Promise<Labelled[]> {
  const found = await stat(path).catch(() => {
    throw new UserError(`${path} does not exist. ${HOW}`);
  });
  const labelled = found.isDirectory() ? await fromFolder(path) : await fromCsv(path);
  if (labelled.length === 0) throw new UserError(`There are no labelled recordings in ${path}. ${HOW}`);
  return labelled.toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

async function fromFolder(folder: string): Promise<Labelled[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => {
    if (!entry.isFile() || entry.name.startsWith('.') || entry.name.endsWith('.csv')) return [];
    const file = join(entry.parentPath, entry.name);
    // The innermost folder counts: angry/calm/1.wav is calm.
    const above = relative(folder, entry.parentPath).split(sep).reverse();
    const emotion = above.map(emotionNamed).find((name) => name !== undefined);
    return emotion === undefined ? [] : [{ file, emotion }];
  });
}

async function fromCsv(path: string): Promise<Labelled[]> {
  const [header = [], ...rows] = parseCsv(await readFile(path, 'utf8'));
  const columns = header.map((name) => name.trim().toLowerCase());
  const [pathAt, emotionAt] = [columns.indexOf('path'), columns.indexOf('emotion')];
  if (pathAt < 0 || emotionAt < 0) {
    throw new UserError(`The first line of ${path} needs the columns path and emotion, but has: ${columns}.`);
  }
  return rows.map((row, i) => {
    const label = row[emotionAt] ?? '';
    const emotion = emotionNamed(label);
    if (emotion === undefined) {
      const known = [...EMOTIONS, ...Object.keys(OTHER_NAMES)].join(', ');
      throw new UserError(`${basename(path)}, row ${i + 2}: "${label}" is not a known emotion (${known}).`);
    }
    return { file: resolve(dirname(path), row[pathAt] ?? ''), emotion };
  });
}

function emotionNamed(name: string): Emotion | undefined {
  const key = name.trim().toLowerCase();
  return OTHER_NAMES[key] ?? EMOTIONS.find((emotion) => emotion === key);
}

/** Handles quoted fields with doubled quotes, and skips empty lines. */
function parseCsv(text: string): string[][] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
        quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'),
      ),
    );
}
