import pg from 'pg';
import { fromPostgres } from '../errors.ts';
import { Migrations } from '../sql/migrate.ts';
import { connectionOptions, useOurSchema } from './database.ts';

const MIGRATIONS = new Migrations(new URL('./migrations/', import.meta.url));
const CONNECT_MS = 5_000;
/** Any number, the same in every process. */
const MIGRATION_LOCK = 7_468_302;

/** Brings the schema up to date. Several processes may call it at once: one migrates, the others wait for it. */
export async function migratePostgres(url: string): Promise<{ from: number; to: number }> {
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: CONNECT_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await useOurSchema(client);
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    return await migrate(client);
  } catch (error) {
    throw fromPostgres(error);
  } finally {
    await client.end();
  }
}

/** All due migrations in one transaction. */
async function migrate(client: pg.Client): Promise<{ from: number; to: number }> {
  const { done, newest } = await schemaOf(client);
  const due = MIGRATIONS.after(done, 'The database');
  if (due.length > 0) {
    await client.query('BEGIN');
    await client.query(
      'CREATE SCHEMA IF NOT EXISTS undertone; CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)',
    );
    for (const { sql } of due) await client.query(sql);
    await client.query('DELETE FROM schema_version');
    await client.query('INSERT INTO schema_version VALUES ($1)', [newest]);
    await client.query('COMMIT');
  }
  return { from: done, to: newest };
}

/** `done`: the schema version of the database, 0 if it is new. `newest`: what this version of Undertone knows. */
export async function schemaOf(client: pg.Client): Promise<{ done: number; newest: number }> {
  const { newest } = MIGRATIONS;
  const { rows: tables } = await client.query(`SELECT to_regclass('undertone.schema_version') AS name`);
  if (tables[0]?.name === null) return { done: 0, newest };
  const { rows } = await client.query('SELECT version FROM undertone.schema_version');
  return { done: rows[0]?.version ?? 0, newest };
}
