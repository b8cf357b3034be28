import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { connectionOptions } from './database.ts';
import { asUnavailable } from './errors.ts';

const MIGRATIONS = new URL('./migrations/', import.meta.url);
const CONNECT_MS = 5_000;
/** Any number, the same in every process. */
const MIGRATION_LOCK = 7_468_302;

class NewerSchemaError extends Error {
  override readonly name = 'NewerSchemaError';
}

/** Brings the database up to date. Several processes may do so at once: one works, the others wait for it. */
export async function migratePostgres(url: string): Promise<{ from: number; to: number }> {
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: CONNECT_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    return await migrate(client);
  } catch (error) {
    throw asUnavailable(error);
  } finally {
    await client.end();
  }
}

/** Files `NNN-what.sql`, applied once each in order; all that are due in one transaction. */
async function migrate(client: pg.Client): Promise<{ from: number; to: number }> {
  const { done, newest } = await schemaOf(client);
  if (done > newest) {
    throw new NewerSchemaError(
      `The database was written by a newer version of Undertone (its schema is ${done}, this version knows ${newest}). Install the newer version, or choose another database.`,
    );
  }
  if (done === newest) return { from: done, to: newest };
  await client.query('BEGIN');
  await client.query(
    'CREATE SCHEMA IF NOT EXISTS undertone; CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)',
  );
  for (const file of migrations().filter((name) => numberOf(name) > done)) {
    await client.query(readFileSync(new URL(file, MIGRATIONS), 'utf8'));
  }
  await client.query('DELETE FROM schema_version');
  await client.query('INSERT INTO schema_version VALUES ($1)', [newest]);
  await client.query('COMMIT');
  return { from: done, to: newest };
}

/** What the database has, 0 when it is new to us, and what this version knows. */
export async function schemaOf(client: pg.Client): Promise<{ done: number; newest: number }> {
  const newest = numberOf(migrations().at(-1) ?? '0');
  const { rows: there } = await client.query(`SELECT to_regclass('undertone.schema_version') AS name`);
  if (there[0]?.name === null) return { done: 0, newest };
  const { rows } = await client.query('SELECT version FROM undertone.schema_version');
  return { done: rows[0]?.version ?? 0, newest };
}

function migrations(): string[] {
  return readdirSync(MIGRATIONS).sort();
}

function numberOf(file: string): number {
  return Number.parseInt(file, 10);
}
