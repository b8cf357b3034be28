import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyRecord, KeyStore } from '@undertone/server';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { readFlags, settingFlag } from '../settings-flags.ts';

const MORE = `
A running server with the same data folder knows of a new or revoked key at once.

Examples:
  undertone keys create laptop
  export SERVICE_API_KEY=$(undertone keys create laptop)
  undertone keys list
  undertone keys revoke 3f9c0a12b4d5`;

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .summary('make, list and revoke API keys')
    .description('Makes, lists and revokes the API keys of a server on this machine.')
    .addHelpText('after', MORE);

  const create = keys
    .command('create')
    .summary('make a key and print it, this once')
    .description('Makes a key. The key alone goes to standard output; it cannot be shown again.')
    .argument('[name]', 'what you will know the key by', 'unnamed')
    .addOption(settingFlag('dataDir'))
    .action((name: string) => createKey(name, dataDirOf(create)));

  const list = keys
    .command('list')
    .summary('list the keys, revoked ones too')
    .description('Lists the keys, newest first. The keys themselves are not stored, only their hashes.')
    .option('--json', 'one JSON object a line')
    .addOption(settingFlag('dataDir'))
    .action(({ json }: { json?: true }) => listKeys(dataDirOf(list), json ?? false));

  const revoke = keys
    .command('revoke')
    .summary('make a key worthless')
    .description('Revokes a key for good.')
    .argument('<id>', 'the id that `undertone keys list` shows')
    .addOption(settingFlag('dataDir'))
    .action((id: string) => revokeKey(id, dataDirOf(revoke)));
}

function dataDirOf(command: Command): string {
  return readFlags(command, ['dataDir']).dataDir;
}

async function createKey(name: string, dataDir: string): Promise<void> {
  if (!/^[^\p{C}]{1,100}$/u.test(name)) {
    throw new Failure('The name of a key must have 1 to 100 printable characters.');
  }
  const { key, record } = await withStore(dataDir, (store) => store.create(name));
  process.stderr.write(
    `Made the key "${record.name}" with the id ${record.id}. It is shown this once; only its hash is kept in ${dataDir}.\n`,
  );
  process.stdout.write(`${key}\n`);
}

async function listKeys(dataDir: string, json: boolean): Promise<void> {
  const records = (await hasStore(dataDir)) ? await withStore(dataDir, (store) => store.list()) : [];
  if (json) {
    for (const record of records) process.stdout.write(`${JSON.stringify(asJson(record))}\n`);
  } else if (records.length === 0) {
    process.stdout.write(`There are no keys in ${dataDir}. \`undertone keys create\` makes one.\n`);
  } else {
    process.stdout.write(table(records));
  }
}

async function revokeKey(id: string, dataDir: string): Promise<void> {
  const revoked = (await hasStore(dataDir)) && (await withStore(dataDir, (store) => store.revoke(id)));
  if (!revoked) {
    throw new Failure(`No key in ${dataDir} that still holds has this id. See \`undertone keys list\`.`);
  }
  process.stdout.write(`Revoked ${id}.\n`);
}

/** Looking must not make a store in a folder that was only mistyped. */
async function hasStore(dataDir: string): Promise<boolean> {
  const { DATABASE_FILE } = await import('@undertone/server');
  return existsSync(join(dataDir, DATABASE_FILE));
}

async function withStore<T>(dataDir: string, work: (store: KeyStore) => Promise<T>): Promise<T> {
  const { openDatabase, SqliteKeyStore } = await import('@undertone/server');
  const database = orFailure(dataDir, () => openDatabase(dataDir));
  const store = new SqliteKeyStore(database);
  try {
    return await work(store);
  } finally {
    await store.close();
    database.close();
  }
}

function orFailure<T>(dataDir: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    throw new Failure(
      `The keys in ${dataDir} cannot be opened (${(cause as Error).message}). Choose the server's folder with --data-dir.`,
      { cause },
    );
  }
}

function asJson({ id, name, createdAt, lastUsedAt, revokedAt }: KeyRecord) {
  return { id, name, created_at: createdAt, last_used_at: lastUsedAt, revoked_at: revokedAt };
}

function table(records: readonly KeyRecord[]): string {
  const rows = [
    ['ID', 'NAME', 'MADE', 'LAST USED', 'STATE'],
    ...records.map(({ id, name, createdAt, lastUsedAt, revokedAt }) => [
      id,
      name,
      minute(createdAt),
      lastUsedAt ? minute(lastUsedAt) : 'never',
      revokedAt ? `revoked ${minute(revokedAt)}` : 'holds',
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

function minute(date: Date): string {
  return `${date.toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
