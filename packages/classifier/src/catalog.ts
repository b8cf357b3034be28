import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { ModelFilesError } from './errors.ts';

/** What was measured on voices that training never heard. All shares lie between 0 and 1. */
export interface Figures {
  uar: number;
  accuracy: number;
  macro_f1: number;
  ece: number;
  split: string;
  /** UAR by corpus: new speakers of corpora that were trained on. */
  new_speakers: Record<string, number>;
  /** UAR by corpus: corpora that were not trained on. If these weights were, a model of a shorter run without it is measured. */
  never_heard: Record<string, number>;
}

export interface ModelEntry {
  id: string;
  /** In the order of the graph's output. */
  emotions: string[];
}

export interface WeightsEntry {
  file: string;
  bytes: number;
  sha256: string;
  licence: string;
  commercial_use: boolean;
  summary: string;
  /** By model id; a model without an entry was not measured with these weights. */
  figures: Record<string, Figures>;
}

export interface Catalog {
  version: string;
  models: ModelEntry[];
  weights: Record<string, WeightsEntry>;
}

export const DEFAULT_MODELS_DIR: string = fileURLToPath(new URL('../models', import.meta.url));

const HOW_TO_FIX =
  'How to fix: restore the models folder from the release or with `git checkout -- packages/classifier/models`.';

export async function readCatalog(modelsDir: string = DEFAULT_MODELS_DIR): Promise<Catalog> {
  const path = join(modelsDir, 'catalog.json');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new ModelFilesError(
      `The model catalogue ${path} cannot be read (${reason(cause)}). ${HOW_TO_FIX}`,
      {
        cause,
      },
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ModelFilesError(`${path} is not JSON (${reason(cause)}). ${HOW_TO_FIX}`, { cause });
  }
  return asCatalog(value, path);
}

export function pickWeights(catalog: Catalog, name: string): WeightsEntry {
  const entry = Object.hasOwn(catalog.weights, name) ? catalog.weights[name] : undefined;
  if (entry === undefined) {
    const known = Object.keys(catalog.weights).join(', ');
    throw new ModelFilesError(`There are no weights named "${name}"; the catalogue has: ${known}`);
  }
  return entry;
}

/** Checks size and SHA-256 against the catalogue, so that a half-fetched file is named here and not by the runtime. */
export async function verifyWeights(modelsDir: string, entry: WeightsEntry): Promise<string> {
  const path = join(modelsDir, entry.file);
  let size: number;
  try {
    size = (await stat(path)).size;
  } catch (cause) {
    throw new ModelFilesError(`The model file ${path} cannot be read (${reason(cause)}). ${HOW_TO_FIX}`, {
      cause,
    });
  }
  if (size !== entry.bytes) {
    throw new ModelFilesError(
      `The model file ${path} has ${size} bytes where catalog.json says ${entry.bytes}: the copy is incomplete or another version. ${HOW_TO_FIX}`,
    );
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  const actual = hash.digest('hex');
  if (actual !== entry.sha256) {
    throw new ModelFilesError(
      `The model file ${path} has SHA-256 ${actual} where catalog.json says ${entry.sha256}: it is damaged or another version. ${HOW_TO_FIX}`,
    );
  }
  return path;
}

function asCatalog(value: unknown, path: string): Catalog {
  const root = object<'version' | 'models' | 'weights'>(value, path, 'the file');
  const models = root.models;
  if (!Array.isArray(models) || models.length === 0) wrong(path, 'models', 'a list with at least one model');
  const weights = Object.entries(object(root.weights, path, 'weights'));
  if (weights.length === 0) wrong(path, 'weights', 'an object with at least one entry');
  return {
    version: string(root.version, path, 'version'),
    models: models.map((model, i) => asModel(model, path, `models[${i}]`)),
    weights: Object.fromEntries(
      weights.map(([name, entry]) => [name, asWeights(entry, path, `weights.${name}`)]),
    ),
  };
}

function asModel(value: unknown, path: string, at: string): ModelEntry {
  const model = object<keyof ModelEntry>(value, path, at);
  const emotions = model.emotions;
  if (!Array.isArray(emotions) || emotions.length < 2 || new Set(emotions).size !== emotions.length) {
    wrong(path, `${at}.emotions`, 'a list of two or more different names');
  }
  return {
    id: string(model.id, path, `${at}.id`),
    emotions: emotions.map((emotion, i) => string(emotion, path, `${at}.emotions[${i}]`)),
  };
}

function asWeights(value: unknown, path: string, at: string): WeightsEntry {
  const entry = object<keyof WeightsEntry>(value, path, at);
  const file = string(entry.file, path, `${at}.file`);
  if (basename(file) !== file) wrong(path, `${at}.file`, 'the name of a file beside catalog.json');
  const sha256 = string(entry.sha256, path, `${at}.sha256`);
  if (!/^[0-9a-f]{64}$/.test(sha256)) wrong(path, `${at}.sha256`, '64 lower-case hexadecimal digits');
  const bytes = entry.bytes;
  if (!Number.isSafeInteger(bytes) || (bytes as number) <= 0)
    wrong(path, `${at}.bytes`, 'a positive integer');
  const commercial = entry.commercial_use;
  if (typeof commercial !== 'boolean') wrong(path, `${at}.commercial_use`, 'true or false');
  const figures = Object.entries(object(entry.figures, path, `${at}.figures`));
  return {
    file,
    bytes: bytes as number,
    sha256,
    licence: string(entry.licence, path, `${at}.licence`),
    commercial_use: commercial,
    summary: string(entry.summary, path, `${at}.summary`),
    figures: Object.fromEntries(figures.map(([id, f]) => [id, asFigures(f, path, `${at}.figures.${id}`)])),
  };
}

function asFigures(value: unknown, path: string, at: string): Figures {
  const figures = object<keyof Figures>(value, path, at);
  const share = (number: unknown, key: string): number => {
    if (typeof number !== 'number' || !(number >= 0 && number <= 1)) {
      wrong(path, `${at}.${key}`, 'a number from 0 to 1');
    }
    return number;
  };
  const byCorpus = (key: 'new_speakers' | 'never_heard'): Record<string, number> => {
    const entries = Object.entries(object(figures[key] ?? {}, path, `${at}.${key}`));
    return Object.fromEntries(entries.map(([corpus, uar]) => [corpus, share(uar, `${key}.${corpus}`)]));
  };
  return {
    uar: share(figures.uar, 'uar'),
    accuracy: share(figures.accuracy, 'accuracy'),
    macro_f1: share(figures.macro_f1, 'macro_f1'),
    ece: share(figures.ece, 'ece'),
    split: string(figures.split, path, `${at}.split`),
    new_speakers: byCorpus('new_speakers'),
    never_heard: byCorpus('never_heard'),
  };
}

function object<Key extends string>(value: unknown, path: string, at: string): { [K in Key]?: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) wrong(path, at, 'an object');
  return value;
}

function string(value: unknown, path: string, at: string): string {
  if (typeof value !== 'string' || value === '') wrong(path, at, 'a text that is not empty');
  return value;
}

function wrong(path: string, at: string, wanted: string): never {
  throw new ModelFilesError(`${path}: ${at} must be ${wanted}. ${HOW_TO_FIX}`);
}

function reason(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);
}
