import { csvLine } from '@undertone/contract';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { OutputFile } from './output-file.ts';
import { UsageError, UserError } from './user-error.ts';

export interface OutputFlags {
  readonly csv?: true;
  readonly jsonl?: true;
  readonly output?: string;
  readonly resume?: true;
}

/** What a command writes for each file. */
export interface RowShape {
  /** The header of its CSV. */
  readonly columns: readonly string[];
  /** A field that its JSON has for every file that did not fail. */
  readonly field: string;
}

type Format = 'csv' | 'jsonl';
type Row = Readonly<Record<string, unknown>>;

export const CONTINUE = 'Continue with the same command and --resume.';
const INSTEAD = 'Choose another file with --output, or leave out --resume to replace this one.';

/** Where the rows of many files go: standard output or a file, as CSV or as JSON Lines. */
export class Output {
  /** Files that already have a result in the output. */
  readonly done: ReadonlySet<string>;
  readonly #format: Format;
  readonly #columns: readonly string[];
  readonly #file: OutputFile | undefined;
  /** What the output begins with: earlier rows, or the header. */
  #begin: string;
  #hasResults = false;
  #last: Promise<unknown> = Promise.resolve();

  /** Undefined if no flag asks for rows. Checks and reads, but writes nothing before the first row. */
  static async plan(flags: OutputFlags, shape: RowShape): Promise<Output | undefined> {
    const format = formatOf(flags);
    if (format === undefined) return undefined;
    if (flags.output === undefined) return new Output(format, shape.columns, undefined, '', []);
    const file = await OutputFile.find(flags.output, flags.resume ?? false);
    const kept = keptRows(file.earlier, format);
    if (format === 'csv') {
      checkHeader(kept, shape, file.path);
      return new Output(format, shape.columns, file, kept, firstFields(kept));
    }
    const lines = checkLines(kept, shape, file.path);
    return new Output(
      format,
      shape.columns,
      file,
      kept,
      lines.map((line) => line['file'] as string),
    );
  }

  private constructor(
    format: Format,
    columns: readonly string[],
    file: OutputFile | undefined,
    kept: string,
    done: Iterable<string>,
  ) {
    this.#format = format;
    this.#columns = columns;
    this.#file = file;
    this.#begin = kept === '' && format === 'csv' ? csvLine(columns) : kept;
    this.done = new Set(done);
  }

  /** True if standard output is reserved for rows. */
  get isStdout(): boolean {
    return this.#file === undefined;
  }

  get isCsv(): boolean {
    return this.#format === 'csv';
  }

  /** After an interruption: where the rows are, and how to continue. Empty if there are none. */
  get resumeHint(): string {
    if (!this.#file?.hasBegun) return '';
    return ` The rows so far are in ${this.#file.path}. ${CONTINUE}`;
  }

  /** Adds the result of one file: its JSON, or its rows by column. */
  async write(object: object, rows: readonly Row[]): Promise<void> {
    const lines = this.isCsv
      ? rows.map((row) => csvLine(this.#columns.map((name) => row[name])))
      : [`${JSON.stringify(object)}\n`];
    this.#hasResults = true;
    await this.#add(lines);
  }

  /** Adds the error of one file: a line of JSON, and nothing in CSV. */
  async writeError(object: { readonly file: string; readonly error: object }): Promise<void> {
    if (!this.isCsv) await this.#add([`${JSON.stringify(object)}\n`]);
  }

  /** Gives the file its name. Not called by a command that was interrupted: its rows wait for --resume. */
  async finish(): Promise<void> {
    await this.#file?.finish(this.#hasResults);
  }

  /** One after the other: several files are in work at once. */
  #add(lines: readonly string[]): Promise<void> {
    const added = this.#last.then(() => this.#append(lines.join('')));
    this.#last = added.catch(() => undefined);
    return added;
  }

  async #append(text: string): Promise<void> {
    if (text === '') return;
    if (this.#file === undefined) {
      process.stdout.write(this.#begin + text);
      this.#begin = '';
      return;
    }
    if (!this.#file.hasBegun) await this.#file.begin(this.#begin);
    await this.#file.append(text);
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
function keptRows(text: string, format: Format): string {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (format === 'csv') return whole;
  const lines = whole.split('\n').filter((line) => line !== '' && parseLine(line)?.['error'] === undefined);
  return lines.map((line) => `${line}\n`).join('');
}

function checkHeader(kept: string, { columns }: RowShape, path: string): void {
  if (kept === '') return;
  // Spreadsheets add a byte order mark and a carriage return.
  const found = kept.slice(0, kept.indexOf('\n')).replace(/^\ufeff|\r$/g, '');
  const expected = csvLine(columns).trimEnd();
  if (found === expected) return;
  throw new UserError(
    `${path} has other columns than this command writes.\n  It has: ${found}\n  This command writes: ${expected}\n${INSTEAD}`,
  );
}

function checkLines(kept: string, { field }: RowShape, path: string): Row[] {
  return kept
    .split('\n')
    .filter(Boolean)
    .map((text, i) => {
      const line = parseLine(text);
      if (typeof line?.['file'] === 'string' && line[field] !== undefined) return line;
      const found = line === undefined ? 'is not a JSON object' : `has: ${Object.keys(line).join(', ')}`;
      throw new UserError(
        `${path} was not written by this command.\n  Its line ${i + 1} ${found}\n  This command writes: file, ${field}, ...\n${INSTEAD}`,
      );
    });
}

function parseLine(text: string): Row | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Row) : undefined;
  } catch {
    return undefined;
  }
}

/** The first field of every row, without the header. */
function firstFields(csv: string): string[] {
  const lines = csv.matchAll(/^(?:"((?:[^"]|"")*)"|([^",\r\n]+)),/gm);
  return [...lines].slice(1).map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain);
}

function formatOf({ csv, jsonl, output }: OutputFlags): Format | undefined {
  const asked = csv ? 'csv' : jsonl ? 'jsonl' : undefined;
  const named = output === undefined ? undefined : output.endsWith('.csv') ? 'csv' : 'jsonl';
  if (asked !== undefined && named !== undefined && asked !== named) {
    throw new UsageError(
      `--${asked} and --output ${output} are two formats. Leave out --${asked}, or end the name in .${asked}.`,
    );
  }
  return asked ?? named;
}

function parseOutput(path: string): string {
  if (/\.(csv|jsonl)$/.test(path)) return path;
  throw new InvalidArgumentError('The file name must end in .csv or .jsonl.');
}
