import { readFileSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { csvLine } from '@undertone/contract';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UserError } from './user-error.ts';

export interface OutputFlags {
  readonly csv?: true;
  readonly jsonl?: true;
  readonly output?: string;
  readonly resume?: true;
}

/** Where the rows of many files go: standard output or a file, as CSV or as JSON Lines. */
export class Output {
  /** Files that already have a result in the output. */
  readonly done: ReadonlySet<string>;
  readonly #format: 'csv' | 'jsonl';
  readonly #path: string | undefined;
  #needsHeader: boolean;

  /** Undefined if no flag asks for rows. */
  static async open(flags: OutputFlags): Promise<Output | undefined> {
    const format = flags.csv ? 'csv' : flags.jsonl ? 'jsonl' : formatOf(flags.output);
    if (format === undefined) return undefined;
    const kept = flags.resume && flags.output !== undefined ? keptRows(flags.output, format) : '';
    if (flags.output !== undefined) await writeFile(flags.output, kept).catch(explainWriting);
    return new Output(format, flags.output, kept);
  }

  private constructor(format: 'csv' | 'jsonl', path: string | undefined, kept: string) {
    this.#format = format;
    this.#path = path;
    this.#needsHeader = format === 'csv' && kept === '';
    this.done = new Set(format === 'csv' ? firstFields(kept) : parseLines(kept).map(({ file }) => file));
  }

  /** True if standard output is reserved for rows. */
  get isStdout(): boolean {
    return this.#path === undefined;
  }

  get isCsv(): boolean {
    return this.#format === 'csv';
  }

  /** Adds the result of one file. A file that failed is a line of JSON, and has no rows in CSV. */
  async write(
    object: object,
    header: readonly unknown[],
    rows: readonly (readonly unknown[])[],
  ): Promise<void> {
    const lines = this.isCsv ? rows.map(csvLine) : [`${JSON.stringify(object)}\n`];
    if (lines.length === 0) return;
    if (this.#needsHeader) lines.unshift(csvLine(header));
    this.#needsHeader = false;
    if (this.#path === undefined) process.stdout.write(lines.join(''));
    else await appendFile(this.#path, lines.join('')).catch(explainWriting);
  }
}

export function addOutputFlags(command: Command): Command {
  return command
    .addOption(
      new Option('-o, --output <file>', 'write the rows to a file: .csv or .jsonl').argParser(parseOutput),
    )
    .option('--resume', 'continue: skip files that are done');
}

/** Drops what must be tried again: failed files, and a last line that a crash cut off. */
function keptRows(path: string, format: 'csv' | 'jsonl'): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return '';
  }
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (format === 'csv') return whole;
  return parseLines(whole)
    .filter(({ error }) => error === undefined)
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

/** The first field of every row, without the header. */
function firstFields(csv: string): string[] {
  const lines = csv.matchAll(/^(?:"((?:[^"]|"")*)"|([^",\n]*))(?:,[^\n]*)?$/gm);
  return [...lines].slice(1).map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain);
}

function parseLines(text: string): { file: string; error?: unknown }[] {
  try {
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  } catch (error) {
    throw new UserError(
      'The output file was not written by this command. Choose another one with --output.',
      { cause: error },
    );
  }
}

function formatOf(path: string | undefined): 'csv' | 'jsonl' | undefined {
  return path === undefined ? undefined : path.endsWith('.csv') ? 'csv' : 'jsonl';
}

function parseOutput(path: string): string {
  if (/\.(csv|jsonl)$/.test(path)) return path;
  throw new InvalidArgumentError('The file name must end in .csv or .jsonl.');
}

function explainWriting(error: unknown): never {
  throw new UserError(`The output file cannot be written: ${(error as Error).message}.`, { cause: error });
}
