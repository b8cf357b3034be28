import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyRecord, KeyStore } from '@undertone/server';
import { type Command, InvalidArgumentError } from 'commander';
import { alignColumns } from '../bars.ts';
import { explainStorage } from '../checks.ts';
import { readDatabaseUrl, readFlags, settingFlag } from '../settings-flags.ts';
import { UserError } from '../user-error.ts';

const MORE = `
A running server with the same data folder accepts a new key immediately and
rejects a revoked one within a minute.

Examples:
  undertone keys create laptop
  export SERVICE_API_KEY=$(undertone keys create laptop --expires 30d)
  undertone keys list
  undertone keys revoke laptop`;

const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .summary('create, list and revoke API keys')
    .description('Creates, lists and revokes the API keys of a server on this machine.')
    .addHelpText('after', MORE);

  const create = keys
    .command('create')
    .summary('create a key and print it once')
    .description('Creates a key and prints it to standard output. It cannot be shown again.')
    .argument('[name]', 'your name for the key', parseName, 'unnamed')
    .option(
      '--expires <when>',
      'after 30d, 12h, 45m or 2w, or on a date such as 2030-01-31 (default: never)',
      parseExpiry,
    )
    .addOption(settingFlag('dataDir'))
    .action((name: string, { expires }: { expires?: Date }) => createKey(create, name, expires));

  const list = keys
    .command('list')
    .summary('list all keys, including revoked and expired ones')
    .description('Lists the keys, newest first. Only their hashes are stored, so the keys are not shown.')
    .option('--json', 'one JSON object per line')
    .addOption(settingFlag('dataDir'))
    .action(({ json = false }: { json?: boolean }) => listKeys(list, json));

  const revoke = keys
    .command('revoke')
    .summary('revoke a key')
    .description('Revokes a key permanently, and cancels its unfinished requests and upload URLs.')
    .argument('<name-or-id>', 'as `undertone keys list` shows it')
    .addOption(settingFlag('dataDir'))
    .action((nameOrId: string) => revokeKey(revoke, nameOrId));
}

function parseName(text: string): string {
  if (/^[^\p{C}]{1,100}$/u.test(text)) return text;
  throw new InvalidArgumentError('A key name must have 1 to 100 printable characters.');
}

/** Exported for tests, which pass the time. */
export function parseExpiry(text: string, _previous?: unknown, now = Date.now()): Date {
  const [, count, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  const at =
    count === undefined ? parseDate(text) : new Date(now + Number(count) * (UNITS[unit] ?? Number.NaN));
  if (Number.isNaN(at.getTime())) {
    throw new InvalidArgumentError('Use a time such as 30d, 12h, 45m or 2w, or a date such as 2030-01-31.');
  }
  if (at.getTime() <= now) throw new InvalidArgumentError(`That is in the past: ${minute(at)}.`);
  return at;
}

/** A date is midnight in UTC. February 31 is refused; JavaScript would read it as March 3. */
function parseDate(text: string): Date {
  const [, day = ''] = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  const exists = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  return new Date(exists ? text : Number.NaN);
}

async function createKey(command: Command, name: string, expiresAt: Date | undefined): Promise<void> {
  const { key, record, place } = await withKeys(command, async (store, place) => ({
    ...(await store.create(name, expiresAt && { expiresAt })),
    place,
  }));
  const end = record.expiresAt ? `It expires on ${minute(record.expiresAt)}.` : 'It does not expire.';
  process.stderr.write(
    `Created the key "${record.name}" with ID ${record.id} in ${place}. ${end}\n` +
      'Copy it now: only its hash is stored, so it cannot be shown again.\n',
  );
  process.stdout.write(`${key}\n`);
}

async function listKeys(command: Command, json: boolean): Promise<void> {
  const records = await withKeys(command, (store) => store.list(), []);
  if (json) {
    for (const record of records) process.stdout.write(`${JSON.stringify(asJson(record))}\n`);
  } else if (records.length === 0) {
    const { dataDir } = readFlags(command, ['dataDir']);
    process.stdout.write(`There are no keys in ${dataDir}. Create one with \`undertone keys create\`.\n`);
  } else {
    process.stdout.write(table(records));
  }
}

async function revokeKey(command: Command, nameOrId: string): Promise<void> {
  const unknown = { why: 'unknown' } as const;
  const outcome = await withKeys(command, (store) => store.revoke(nameOrId), unknown);
  if ('revoked' in outcome) {
    process.stdout.write(`Revoked the key "${outcome.revoked.name}" with ID ${outcome.revoked.id}.\n`);
    return;
  }
  if (outcome.why === 'ambiguous') {
    const records = await withKeys(command, (store) => store.list());
    const ids = records.filter((record) => record.name === nameOrId && stateOf(record) === 'active');
    throw new UserError(
      `${ids.length} active keys are named "${nameOrId}". Revoke one by its ID: ${ids.map(({ id }) => id).join(', ')}.`,
    );
  }
  throw new UserError(
    `There is no active key with the ID or name "${nameOrId}". List the keys with \`undertone keys list\`.`,
  );
}

/** With `fallback`, no database is created in a folder without one: its name may be mistyped. */
async function withKeys<T>(
  command: Command,
  work: (keys: KeyStore, place: string) => Promise<T>,
  fallback?: T,
): Promise<T> {
  const { dataDir } = readFlags(command, ['dataDir']);
  const { DATABASE_FILE, openStores } = await import('@undertone/server/stores');
  const databaseUrl = readDatabaseUrl();
  if (databaseUrl === '' && fallback !== undefined && !existsSync(join(dataDir, DATABASE_FILE)))
    return fallback;
  try {
    const stores = await openStores({ dataDir, databaseUrl }, { kind: 'local' });
    try {
      return await work(stores.keys, stores.place);
    } finally {
      await stores.close();
    }
  } catch (error) {
    throw await explainStorage(error, dataDir, databaseUrl);
  }
}

function stateOf({ revokedAt, expiresAt }: KeyRecord): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}

function asJson(record: KeyRecord) {
  const { id, name, createdAt, lastUsedAt, expiresAt, revokedAt } = record;
  return {
    id,
    name,
    state: stateOf(record),
    created_at: createdAt,
    last_used_at: lastUsedAt,
    expires_at: expiresAt,
    revoked_at: revokedAt,
  };
}

function table(records: readonly KeyRecord[]): string {
  return alignColumns([
    ['ID', 'NAME', 'CREATED', 'LAST USED', 'EXPIRES', 'STATE'],
    ...records.map((record) => {
      const { id, name, createdAt, lastUsedAt, expiresAt } = record;
      return [id, name, ...[createdAt, lastUsedAt, expiresAt].map(minute), stateOf(record)];
    }),
  ]);
}

function minute(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
