import { readFileSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { csvLine, firstFields } from './csv.ts';
import { UserError } from './user-error.ts';

export interface OutputFlags {
  readonly csv?: true;
  readonly jsonl?: true;
  readonly output?: string;
  readonly resume?: true;
}

/** Where the rows of many files go: standard output or a file, as CSV or as one JSON object a line. */
export class Output {
  /** The files whose results are there already. */
  readonly done: ReadonlySet<string>;
  readonly #format: 'csv' | 'jsonl';
  readonly #path: string | undefined;
  #needsHeader: boolean;

  /** Undefined: nobody asked for rows. */
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

  /** Whether standard output is for rows alone. */
  get isStdout(): boolean {
    return this.#path === undefined;
  }

  get isCsv(): boolean {
    return this.#format === 'csv';
  }

  /** Adds what one file gave. A file that failed is a line of JSON; in CSV it has no rows. */
  async write(
    object: object,
    header: readonly string[],
    rows: readonly (readonly unknown[])[],
  ): Promise<void> {
    const lines = this.#format === 'jsonl' ? [JSON.stringify(object)] : rows.map(csvLine);
    if (lines.length === 0) return;
    if (this.#needsHeader) lines.unshift(csvLine(header));
    this.#needsHeader = false;
    const text = `${lines.join('\n')}\n`;
    if (this.#path === undefined) process.stdout.write(text);
    else await appendFile(this.#path, text).catch(explainWriting);
  }
}

export function addOutputFlags(command: Command): Command {
  return command
    .addOption(
      new Option('-o, --output <file>', 'write the rows to a file: .csv or .jsonl').argParser(parseOutput),
    )
    .option('--resume', 'continue: skip what is done already');
}

/** Lines that ended in an error are tried again; a line that was cut off by a crash too. */
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

function parseLines(text: string): { file: string; error?: unknown }[] {
  try {
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  } catch (error) {
    throw new UserError('The output file is not one of this command. Name another with --output.', {
      cause: error,
    });
  }
}

function formatOf(path: string | undefined): 'csv' | 'jsonl' | undefined {
  return path === undefined ? undefined : path.endsWith('.csv') ? 'csv' : 'jsonl';
}

function parseOutput(path: string): string {
  if (/\.(csv|jsonl)$/.test(path)) return path;
  throw new InvalidArgumentError('Name a file that ends in .csv or .jsonl.');
}

function explainWriting(error: unknown): never {
  throw new UserError(`The output file cannot be written: ${(error as Error).message}.`, { cause: error });
}
