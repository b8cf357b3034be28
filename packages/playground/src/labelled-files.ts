// Files from a folder, a drop or a dialog, with the labels that their folders give them.
import { type Emotion, emotionOfFolders, labelsFromCsv } from '@undertone/contract';

export interface NewFile {
  readonly file: File;
  /** The path inside the dropped folder. */
  readonly path: string;
  readonly truth?: Emotion;
}

const SOUND = /\.(wav|mp3|m4a|aac|ogg|oga|opus|webm|flac|mp4|mov|mkv|aiff?|au|wma|amr|3gp)$/i;

export interface Sorted {
  readonly recordings: NewFile[];
  readonly tables: File[];
}

/** Recordings and CSV files. What else is in a folder is left out; a file chosen by itself is always a recording. */
export function sortFiles(files: readonly { readonly file: File; readonly path: string }[]): Sorted {
  const tables = files.filter(({ path }) => /\.csv$/i.test(path)).map(({ file }) => file);
  const recordings = files
    .filter(({ path }) => !/\.csv$/i.test(path) && (!path.includes('/') || isSound(path)))
    .map(({ file, path }) => {
      const truth = emotionOfFolders(path.split('/').slice(0, -1));
      return truth === undefined ? { file, path } : { file, path, truth };
    });
  return { recordings, tables };
}

function isSound(path: string): boolean {
  return SOUND.test(path) && !path.split('/').at(-1)?.startsWith('.');
}

export function labelsOf(text: string, name: string): Map<string, Emotion> {
  return new Map(labelsFromCsv(text, name).map(({ path, emotion }) => [normal(path), emotion]));
}

/** A CSV names files by any part of their path from the right: `1.wav`, `session/1.wav`. */
export function truthOf(path: string, labels: ReadonlyMap<string, Emotion>): Emotion | undefined {
  const parts = normal(path).split('/');
  for (let from = 0; from < parts.length; from++) {
    const truth = labels.get(parts.slice(from).join('/'));
    if (truth !== undefined) return truth;
  }
  // The CSV may have longer paths than the page knows.
  for (const [named, emotion] of labels) if (named.endsWith(`/${parts.join('/')}`)) return emotion;
  return undefined;
}

function normal(path: string): string {
  return path.replaceAll('\\', '/').replace(/^\.\//, '');
}
