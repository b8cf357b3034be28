import { readdirSync, readFileSync } from 'node:fs';

export class NewerSchemaError extends Error {
  override readonly name = 'NewerSchemaError';
}

/** Numbered files `NNN-what.sql` in a folder. Each is applied once, in order; the database remembers the last number. */
export class Migrations {
  readonly newest: number;
  readonly #folder: URL;
  readonly #names: readonly string[];

  constructor(folder: URL) {
    this.#folder = folder;
    this.#names = readdirSync(folder).sort();
    this.newest = numberOf(this.#names.at(-1) ?? '0');
  }

  /** The migrations that a database with this version lacks. */
  after(version: number, database: string): { number: string; sql: string }[] {
    if (version > this.newest) {
      throw new NewerSchemaError(
        `${database} was written by a newer version of Undertone (its schema is ${version}, this version knows ${this.newest}). Install the newer version, or choose another data folder or database.`,
      );
    }
    return this.#names
      .filter((name) => numberOf(name) > version)
      .map((name) => ({ number: name.slice(0, 3), sql: readFileSync(new URL(name, this.#folder), 'utf8') }));
  }
}

function numberOf(name: string): number {
  return Number.parseInt(name, 10);
}
