import { constants } from 'node:fs';
import { access, appendFile, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UserError } from './user-error.ts';

/**
 * A file whose old content survives until there is new content. A new file is written beside it as `NAME.part` and renamed
 * at the end; `--resume` continues an interrupted `NAME.part`, or appends to a finished file.
 */
export class OutputFile {
  /** What an earlier run has written; empty without `--resume`. */
  readonly earlier: string;
  /** Where the rows go until the end. */
  readonly path: string;
  readonly #target: string;
  /** Of the file that is replaced: a private one stays private. */
  readonly #mode: number | undefined;
  #begun = false;

  /** Reads what is there and changes nothing. */
  static async find(name: string, resume: boolean): Promise<OutputFile> {
    // A link stays a link.
    const target = await realpath(name).catch(() => name);
    const mode = await stat(target).then(
      (found) => found.mode,
      () => undefined,
    );
    await checkWritable(target, mode !== undefined);
    const part = `${target}.part`;
    const unfinished = resume ? await readIfThere(part) : undefined;
    const finished = resume && unfinished === undefined ? await readIfThere(target) : undefined;
    const path = finished === undefined ? part : target;
    return new OutputFile(target, path, unfinished ?? finished ?? '', mode);
  }

  private constructor(target: string, path: string, earlier: string, mode: number | undefined) {
    this.#target = target;
    this.path = path;
    this.earlier = earlier;
    this.#mode = mode;
  }

  get hasBegun(): boolean {
    return this.#begun;
  }

  /** Starts with the text, which is what is kept of `earlier`, in one step. */
  async begin(text: string): Promise<void> {
    this.#begun = true;
    if (text !== '' && text === this.earlier) return;
    const whole = `${this.path}.tmp`;
    try {
      await writeFile(whole, text, this.#mode === undefined ? {} : { mode: this.#mode });
      await rename(whole, this.path);
    } catch (error) {
      throw writingFailed(error);
    }
  }

  async append(text: string): Promise<void> {
    await appendFile(this.path, text).catch((error: unknown) => {
      throw writingFailed(error);
    });
  }

  /** Gives a new file its name. If it has no results, a file of that name stays as it was. */
  async finish(hasResults: boolean): Promise<void> {
    const isEmpty = !this.#begun && this.earlier === '';
    if (isEmpty || this.path === this.#target) return;
    const replaces = hasResults || this.earlier !== '' || this.#mode === undefined;
    await (replaces ? rename(this.path, this.#target) : rm(this.path)).catch((error: unknown) => {
      throw writingFailed(error);
    });
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new UserError(`The output file cannot be read: ${(error as Error).message}.`, { cause: error });
  }
}

async function checkWritable(path: string, isThere: boolean): Promise<void> {
  try {
    await access(dirname(path), constants.W_OK);
    if (isThere) await access(path, constants.W_OK);
  } catch (error) {
    throw writingFailed(error);
  }
}

function writingFailed(error: unknown): UserError {
  return new UserError(`The output file cannot be written: ${(error as Error).message}.`, { cause: error });
}
