import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export const DATABASE_FILE = 'undertone.db';

const MIGRATIONS = new URL('./migrations/', import.meta.url);

/**
 * Opens the one database of this installation and brings it up to date. The server and the command line may
 * have it open at the same time.
 */
export function openDatabase(dataDir: string): DatabaseSync {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(join(dataDir, DATABASE_FILE), { timeout: 5_000 });
  try {
    // WAL: readers never wait for a writer. FULL: what was acknowledged survives a power cut.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
    migrate(database);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** Migrations are files `NNN-what.sql`, applied once each in order; `user_version` says how far we are. */
function migrate(database: DatabaseSync): void {
  const files = readdirSync(MIGRATIONS).filter((file) => file.endsWith('.sql'));
  const newest = Math.max(...files.map(numberOf));
  database.exec('BEGIN IMMEDIATE');
  try {
    const { user_version: done } = database.prepare('PRAGMA user_version').get() as { user_version: number };
    if (done > newest) {
      throw new Error(
        `The database was written by a newer version (${done}, this one knows ${newest}); update the server.`,
      );
    }
    for (const file of files.filter((name) => numberOf(name) > done).sort()) {
      database.exec(readFileSync(new URL(file, MIGRATIONS), 'utf8'));
      database.exec(`PRAGMA user_version = ${numberOf(file)}`);
    }
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

function numberOf(file: string): number {
  return Number.parseInt(file, 10);
}
