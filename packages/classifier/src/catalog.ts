import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { type Static, Type } from 'typebox';
import Value from 'typebox/value';
import { ModelFilesError } from './errors.ts';

/** TypeBox fills in defaults within the values of a record only if these have a default too. */
const RECORD_VALUE = { default: {} };
const Text = Type.String({ minLength: 1 });
const Share = Type.Number({ minimum: 0, maximum: 1 });
/** UAR by corpus. */
const ByCorpus = Type.Record(Type.String(), Share, { default: {} });

/** Measured on speakers that are not in the training data. */
const Figures = Type.Object(
  {
    uar: Share,
    accuracy: Share,
    macro_f1: Share,
    ece: Share,
    split: Text,
    /** New speakers of the training corpora. */
    new_speakers: ByCorpus,
    /** Corpora outside the training data. If these weights were trained on one, a shorter run without it is measured. */
    never_heard: ByCorpus,
  },
  RECORD_VALUE,
);

const ModelEntry = Type.Object({
  id: Text,
  /** In the order of the graph's output. */
  emotions: Type.Array(Text, { minItems: 2, uniqueItems: true }),
});

const WeightsEntry = Type.Object(
  {
    /** Name of a file beside catalog.json. */
    file: Type.String({ pattern: '^[^/\\\\]+$' }),
    bytes: Type.Integer({ minimum: 1 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    licence: Text,
    commercial_use: Type.Boolean(),
    summary: Text,
    /** By model id. A model without an entry was not measured with these weights. */
    figures: Type.Record(Type.String(), Figures),
  },
  RECORD_VALUE,
);

const Catalog = Type.Object({
  version: Text,
  models: Type.Array(ModelEntry, { minItems: 1 }),
  weights: Type.Record(Type.String(), WeightsEntry, { minProperties: 1 }),
});

export type Figures = Static<typeof Figures>;
export type ModelEntry = Static<typeof ModelEntry>;
export type WeightsEntry = Static<typeof WeightsEntry>;
export type Catalog = Static<typeof Catalog>;

export const DEFAULT_MODELS_DIR: string = fileURLToPath(new URL('../models', import.meta.url));

const HOW_TO_FIX =
  'How to fix: restore the models folder from the release or with `git checkout -- packages/classifier/models`.';

export async function readCatalog(modelsDir: string = DEFAULT_MODELS_DIR): Promise<Catalog> {
  const path = join(modelsDir, 'catalog.json');
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw unreadable('model catalogue', path, cause);
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new ModelFilesError(`${path} is not JSON (${reason(cause)}). ${HOW_TO_FIX}`, { cause });
  }
  const catalog = Value.Default(Catalog, json);
  if (Value.Check(Catalog, catalog)) return catalog;
  const [error] = Value.Errors(Catalog, catalog);
  const field = error?.instancePath.slice(1).replaceAll('/', '.') || 'the file';
  throw new ModelFilesError(`${path}: ${field} ${error?.message}. ${HOW_TO_FIX}`);
}

export function pickWeights(catalog: Catalog, name: string): WeightsEntry {
  const entry = Object.hasOwn(catalog.weights, name) ? catalog.weights[name] : undefined;
  if (entry === undefined) {
    const known = Object.keys(catalog.weights).join(', ');
    throw new ModelFilesError(`There are no weights named "${name}"; the catalogue has: ${known}`);
  }
  return entry;
}

/** Returns the path. Checks size and SHA-256, so that an incomplete download is reported here and not by the runtime. */
export async function verifyWeights(modelsDir: string, entry: WeightsEntry): Promise<string> {
  const path = join(modelsDir, entry.file);
  const { size } = await stat(path).catch((cause: unknown) => {
    throw unreadable('model file', path, cause);
  });
  if (size !== entry.bytes) {
    throw new ModelFilesError(
      `The model file ${path} has ${size} bytes; catalog.json states ${entry.bytes}. The copy is incomplete or another version. ${HOW_TO_FIX}`,
    );
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  const actual = hash.digest('hex');
  if (actual !== entry.sha256) {
    throw new ModelFilesError(
      `The model file ${path} has SHA-256 ${actual}; catalog.json states ${entry.sha256}. It is damaged or another version. ${HOW_TO_FIX}`,
    );
  }
  return path;
}

function unreadable(what: string, path: string, cause: unknown): ModelFilesError {
  return new ModelFilesError(`The ${what} ${path} cannot be read (${reason(cause)}). ${HOW_TO_FIX}`, {
    cause,
  });
}

function reason(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);
}
