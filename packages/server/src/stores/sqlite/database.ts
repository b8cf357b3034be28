import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { asUnavailable } from '../files/errors.ts';
import { retryWhileBusy, transaction } from './retrying-database.ts';

export const DATABASE_FILE = 'undertone.db';

const MIGRATIONS = new URL('./migrations/', import.meta.url);
/** Another process may be migrating. */
const OPEN_RETRY_MS = 5_000;
const OWNER_ONLY = 0o600;

/**
 * Opens the one database of this installation and brings it up to date. Several processes may have it open, and may open
 * it at the same time. Nobody but its owner can read it.
 */
export async function openDatabase(dataDir: string): Promise<DatabaseSync> {
  const path = join(dataDir, DATABASE_FILE);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    // Files that SQLite makes beside it get the same mode.
    closeSync(openSync(path, 'a', OWNER_ONLY));
    for (const suffix of ['', '-wal', '-shm']) closeToOthers(path + suffix);
  } catch (error) {
    throw asUnavailable(error);
  }
  return retryWhileBusy(() => open(path), OPEN_RETRY_MS);
}

/** The sweep: copies made before a migration have results in them, which may not be kept. */
export async function eraseOldCopies(dataDir: string, olderThanMs: number): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(`${DATABASE_FILE}.before-`)) continue;
    const { mtimeMs } = await stat(join(dataDir, name));
    if (mtimeMs < Date.now() - olderThanMs) await rm(join(dataDir, name), { force: true });
  }
}

function open(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // WAL: readers never wait for a writer. FULL: what was acknowledged survives a power cut. secure_delete: what is
    // erased is overwritten.
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON;`);
    migrate(database, path);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** Migrations are files `NNN-what.sql`, applied once each in order; `user_version` says how far we are. */
function migrate(database: DatabaseSync, path: string): void {
  const files = readdirSync(MIGRATIONS).sort();
  const newest = numberOf(files.at(-1) ?? '');
  if (versionOf(database) === newest) return;
  transaction(database, () => {
    const done = versionOf(database);
    if (done > newest) {
      throw new Error(
        `${path} was written by a newer version of Undertone (its schema is ${done}, this version knows ${newest}). Install the newer version, or choose another data folder.`,
      );
    }
    const due = files.filter((file) => numberOf(file) > done);
    if (done > 0 && due[0] !== undefined) copy(path, `${path}.before-${due[0].slice(0, 3)}`);
    for (const file of due) database.exec(readFileSync(new URL(file, MIGRATIONS), 'utf8'));
    database.exec(`PRAGMA user_version = ${newest}`);
  });
}

/** By a connection of its own, which reads while ours keeps everybody from writing. */
function copy(from: string, to: string): void {
  rmSync(to, { force: true });
  closeSync(openSync(to, 'wx', OWNER_ONLY));
  const database = new DatabaseSync(from, { readOnly: true });
  try {
    database.prepare('VACUUM INTO ?').run(to);
  } finally {
    database.close();
  }
}

function closeToOthers(path: string): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file !== undefined && (file.mode & 0o777) !== OWNER_ONLY) chmodSync(path, OWNER_ONLY);
}

function versionOf(database: DatabaseSync): number {
  return (database.prepare('PRAGMA user_version').get() as { user_version: number }).user_version;
}

function numberOf(file: string): number {
  return Number.parseInt(file, 10);
}
