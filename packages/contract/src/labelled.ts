// Labels of recordings: names of folders, or the columns of a CSV.
import { EMOTIONS, type Emotion } from './emotions.ts';

/** Names that other datasets use. */
const OTHER_NAMES: Readonly<Record<string, Emotion>> = {
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

/** Every name that `emotionNamed` knows. */
export const EMOTION_NAMES: readonly string[] = [...EMOTIONS, ...Object.keys(OTHER_NAMES)];

export function emotionNamed(name: string): Emotion | undefined {
  const key = name.trim().toLowerCase();
  return Object.hasOwn(OTHER_NAMES, key) ? OTHER_NAMES[key] : EMOTIONS.find((emotion) => emotion === key);
}

/** The innermost folder that names an emotion counts: angry/calm/1.wav is neutral. */
export function emotionOfFolders(folders: readonly string[]): Emotion | undefined {
  return folders
    .toReversed()
    .map(emotionNamed)
    .find((name) => name !== undefined);
}

export interface LabelledPath {
  readonly path: string;
  readonly emotion: Emotion;
}

/** The rows of a CSV with the columns path and emotion. Throws a sentence for the user. */
export function labelsFromCsv(text: string, name: string): LabelledPath[] {
  const [header = [], ...rows] = parseCsv(text);
  const columns = header.map((column) => column.trim().toLowerCase());
  const [pathAt, emotionAt] = [columns.indexOf('path'), columns.indexOf('emotion')];
  if (pathAt < 0 || emotionAt < 0) {
    throw new Error(`The first line of ${name} needs the columns path and emotion, but has: ${columns}.`);
  }
  return rows.map((row, i) => {
    const label = row[emotionAt] ?? '';
    const emotion = emotionNamed(label);
    if (emotion === undefined) {
      throw new Error(
        `${name}, row ${i + 2}: "${label}" is not a known emotion (${EMOTION_NAMES.join(', ')}).`,
      );
    }
    return { path: row[pathAt] ?? '', emotion };
  });
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
