import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { type Emotion, emotionOfFolders, labelsFromCsv } from '@undertone/contract';
import { UserError } from '../user-error.ts';

export interface Labelled {
  readonly file: string;
  readonly emotion: Emotion;
}

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
    const emotion = emotionOfFolders(relative(folder, entry.parentPath).split(sep));
    return emotion === undefined ? [] : [{ file, emotion }];
  });
}

async function fromCsv(path: string): Promise<Labelled[]> {
  const text = await readFile(path, 'utf8');
  try {
    return labelsFromCsv(text, basename(path)).map((row) => ({
      file: resolve(dirname(path), row.path),
      emotion: row.emotion,
    }));
  } catch (error) {
    throw new UserError((error as Error).message);
  }
}
