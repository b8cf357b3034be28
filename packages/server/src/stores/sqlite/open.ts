import { chmodSync, closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromDisk, isBusy } from '../errors.ts';
import { Migrations } from '../sql/migrate.ts';

export const DATABASE_FILE = 'undertone.db';

const MIGRATIONS = new Migrations(new URL('./migrations/', import.meta.url));
/** Another process may be migrating. */
const OPEN_RETRY_MS = 5_000;
const OWNER_ONLY = 0o600;
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;
/** A database of an earlier version up to this size is rewritten at its upgrade, within a few seconds. */
const MAX_REWRITTEN_BYTES = 256 * 1024 * 1024;

/**
 * Opens and migrates the database in the data folder. Several processes may open it, even at the same time. Only its owner
 * can read it.
 */
export async function openDatabase(dataDir: string): Promise<DatabaseSync> {
  const path = join(dataDir, DATABASE_FILE);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    // SQLite gives the files beside it the same mode.
    closeSync(openSync(path, 'a', OWNER_ONLY));
    for (const suffix of ['', '-wal', '-shm']) restrictToOwner(path + suffix);
  } catch (error) {
    throw fromDisk(error);
  }
  return retryWhileBusy(() => open(path), OPEN_RETRY_MS);
}

/** Retries while another process writes. */
export async function retryWhileBusy<T>(work: () => T | Promise<T>, retryMs: number): Promise<T> {
  const deadline = performance.now() + retryMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || performance.now() + pause > deadline) throw fromDisk(error);
    }
    await sleep(pause);
  }
}

/** True if another connection is open: only a database with one connection can leave the WAL mode. */
export function isOpenElsewhere(database: DatabaseSync): boolean {
  try {
    database.exec('PRAGMA journal_mode = DELETE');
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  }
  database.exec('PRAGMA journal_mode = WAL');
  return false;
}

/** The sweep: copies made before a migration contain results, which must not outlive their retention. */
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
    // Before the first table is created.
    shrinkInSteps(database);
    // WAL: readers never wait for a writer. FULL: acknowledged writes survive a power cut. secure_delete: erased data is
    // overwritten.
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON;`);
    migrate(database, path);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** `user_version` is the number of the last migration. */
function migrate(database: DatabaseSync, path: string): void {
  if (versionOf(database) === MIGRATIONS.newest) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = versionOf(database);
    const due = MIGRATIONS.after(version, path);
    if (version > 0 && due[0] !== undefined) copyDatabase(path, `${path}.before-${due[0].number}`);
    for (const { sql } of due) database.exec(sql);
    database.exec(`PRAGMA user_version = ${MIGRATIONS.newest}; COMMIT`);
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
  if (numberOf(database, 'auto_vacuum') === 0) rewriteIfSmall(database);
}

/** The sweep can then give free space back to the file system, a little at a time. In an older database from its next VACUUM on. */
function shrinkInSteps(database: DatabaseSync): void {
  // Where it is set already, setting it again would be a write.
  if (numberOf(database, 'auto_vacuum') === 0) database.exec('PRAGMA auto_vacuum = INCREMENTAL');
}

function rewriteIfSmall(database: DatabaseSync): void {
  const bytes = numberOf(database, 'page_count') * numberOf(database, 'page_size');
  if (bytes > MAX_REWRITTEN_BYTES) return;
  try {
    database.exec('VACUUM');
  } catch {
    // A full disk, or another process is writing. Everything works as before; the file only stays as large as it was once.
  }
}

/** Through a connection of its own, which can read while another one blocks all writers. Only its owner can read the copy. */
export function copyDatabase(from: string, to: string): void {
  rmSync(to, { force: true });
  closeSync(openSync(to, 'wx', OWNER_ONLY));
  const database = new DatabaseSync(from, { readOnly: true });
  try {
    shrinkInSteps(database);
    database.prepare('VACUUM INTO ?').run(to);
  } finally {
    database.close();
  }
}

function restrictToOwner(path: string): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file !== undefined && (file.mode & 0o777) !== OWNER_ONLY) chmodSync(path, OWNER_ONLY);
}

function versionOf(database: DatabaseSync): number {
  return numberOf(database, 'user_version');
}

function numberOf(database: DatabaseSync, pragma: string): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
}
