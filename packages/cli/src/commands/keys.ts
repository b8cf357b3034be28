import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ChangedKey, KeyRecord, LimitChanges, OwnerUse, Stores } from '@undertone/server';
import { type Command, InvalidArgumentError } from 'commander';
import { alignColumns } from '../bars.ts';
import { explainStorage } from '../checks.ts';
import { LIMIT_NAMES, parseLimits, showLimits, showUse } from '../key-limits.ts';
import { readDatabaseUrl, readFlags, settingFlag } from '../settings-flags.ts';
import { UserError } from '../user-error.ts';

const MORE = `
A running server with the same data folder accepts a new key immediately and
rejects a revoked one within a minute.

Examples:
  undertone keys create laptop
  export SERVICE_API_KEY=$(undertone keys create laptop --expires 30d)
  undertone keys create phone --owner laptop --limits rate=600,storage=10GB
  undertone keys limits phone queued=50,open=100,audio_hours=200
  undertone keys list
  undertone keys revoke laptop`;

const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .summary('create, limit, list and revoke API keys')
    .description('Creates, limits, lists and revokes the API keys of a server on this machine.')
    .addHelpText('after', MORE);

  const create = keys
    .command('create')
    .summary('create a key and print it once')
    .description('Creates a key and prints it to standard output. It cannot be shown again.')
    .argument('[name]', 'your name for the key (default: "unnamed")', parseName)
    .option(
      '--expires <when>',
      'after 30d, 12h, 45m or 2w, or on a date such as 2030-01-31 (default: never)',
      parseExpiry,
    )
    .option(
      '--owner <name>',
      'keys of one owner share requests, webhooks and limits on stored things; the name of a key works too (default: the name of the key)',
      parseName,
    )
    .option(
      '--limits <limits>',
      `limits such as rate=600,storage=10GB (${LIMIT_NAMES.join(', ')}); 0 is no limit (default: the server's settings)`,
      parseLimits,
    )
    .addOption(settingFlag('dataDir'))
    .action((name: string | undefined, options: CreateOptions) => createKey(create, name, options));

  const limits = keys
    .command('limits')
    .summary('change the limits of a key')
    .description(
      'Changes limits of a key: requests per minute (rate) and open streams (streams) of this key; queued requests (queued), open uploads (open), stored and arriving bytes (storage) and hours of audio in 24 hours (audio_hours) of all keys of its owner. A running server applies them within seconds.',
    )
    .argument('<name-or-id>', 'as `undertone keys list` shows it')
    .argument('<limits>', 'such as rate=600,storage=10GB; 0 is no limit, default is the setting', parseLimits)
    .addOption(settingFlag('dataDir'))
    .action((nameOrId: string, changes: LimitChanges) => changeLimits(limits, nameOrId, changes));

  const list = keys
    .command('list')
    .summary('list all keys, including revoked and expired ones')
    .description(
      'Lists the keys, newest first, with their limits and what their owner uses now (audio_hours: in the last 24 hours). Only their hashes are stored, so the keys are not shown.',
    )
    .option('--json', 'one JSON object per line')
    .addOption(settingFlag('dataDir'))
    .action(({ json = false }: { json?: boolean }) => listKeys(list, json));

  const revoke = keys
    .command('revoke')
    .summary('revoke a key')
    .description(
      "Revokes a key permanently. With the last key of an owner, the owner's unfinished requests and upload URLs are cancelled.",
    )
    .argument('<name-or-id>', 'as `undertone keys list` shows it')
    .addOption(settingFlag('dataDir'))
    .action((nameOrId: string) => revokeKey(revoke, nameOrId));
}

function parseName(text: string): string {
  if (/^[^\p{C}]{1,100}$/u.test(text)) return text;
  throw new InvalidArgumentError('A name must have 1 to 100 printable characters.');
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

interface CreateOptions {
  readonly expires?: Date;
  readonly owner?: string;
  readonly limits?: LimitChanges;
}

async function createKey(command: Command, name: string | undefined, options: CreateOptions): Promise<void> {
  const { key, record, place, others } = await withStores(command, async ({ keys, place }) => {
    const owner = ownerOf(await keys.list(), name, options.owner);
    const { expires: expiresAt, limits = {} } = options;
    const named = Object.entries(limits).filter(([, limit]) => limit !== null);
    const made = await keys.create(name ?? 'unnamed', {
      expiresAt,
      owner,
      limits: Object.fromEntries(named),
    });
    const others = (await keys.list()).filter(
      (other) =>
        other.owner === made.record.owner && other.id !== made.record.id && stateOf(other) === 'active',
    );
    return { ...made, place, others };
  });
  const end = record.expiresAt ? `It expires on ${minute(record.expiresAt)}.` : 'It does not expire.';
  const shared =
    others.length === 0
      ? ''
      : ` It shares requests, webhooks and limits with ${others.map((other) => `"${other.name}" (${other.id})`).join(', ')}.`;
  process.stderr.write(
    `Created the key "${record.name}" with ID ${record.id} in ${place}. ${end}${shared}\n` +
      'Copy it now: only its hash is stored, so it cannot be shown again.\n',
  );
  process.stdout.write(`${key}\n`);
}

/**
 * Keys that were made before there were owners own their requests under their id. So an owner may also be given as the name
 * or id of one of its keys. Undefined: the key shares nothing.
 */
function ownerOf(
  records: readonly KeyRecord[],
  name: string | undefined,
  given: string | undefined,
): string | undefined {
  const wanted = given ?? name;
  if (wanted === undefined || records.some(({ owner }) => owner === wanted)) return wanted;
  const found = records.filter((record) => record.name === wanted || record.id === wanted);
  const active = found.filter((record) => stateOf(record) === 'active');
  const owners = new Set((active.length > 0 ? active : found).map(({ owner }) => owner));
  if (owners.size === 1) return [...owners][0];
  if (owners.size === 0 || given === undefined) return wanted;
  const ids = found.map(({ id }) => id).join(', ');
  throw new UserError(`Keys of different owners are named "${wanted}". Use the ID of one of them: ${ids}.`);
}

async function changeLimits(command: Command, nameOrId: string, changes: LimitChanges): Promise<void> {
  const work = ({ keys }: Stores) => keys.changeLimits(nameOrId, changes);
  const outcome = await withStores<ChangedKey>(command, work, UNKNOWN);
  if ('why' in outcome) throw await notFound(command, nameOrId, outcome.why, 'Name');
  const { name, id, limits } = outcome.changed;
  process.stdout.write(`The key "${name}" with ID ${id} has these limits now: ${showLimits(limits)}.\n`);
}

async function listKeys(command: Command, json: boolean): Promise<void> {
  const nothing = { records: [], use: new Map<string, OwnerUse>() };
  const { records, use } = await withStores<{ records: KeyRecord[]; use: Map<string, OwnerUse> }>(
    command,
    async ({ keys, ledger }) => ({ records: await keys.list(), use: await ledger.use() }),
    nothing,
  );
  if (json) {
    for (const record of records) {
      process.stdout.write(`${JSON.stringify(asJson(record, use.get(record.owner)))}\n`);
    }
  } else if (records.length === 0) {
    const { dataDir } = readFlags(command, ['dataDir']);
    process.stdout.write(`There are no keys in ${dataDir}. Create one with \`undertone keys create\`.\n`);
  } else {
    process.stdout.write(table(records, use));
  }
}

async function revokeKey(command: Command, nameOrId: string): Promise<void> {
  type Outcome = Awaited<ReturnType<Stores['keys']['revoke']>>;
  const outcome = await withStores<Outcome>(command, ({ keys }) => keys.revoke(nameOrId), UNKNOWN);
  if ('revoked' in outcome) {
    process.stdout.write(`Revoked the key "${outcome.revoked.name}" with ID ${outcome.revoked.id}.\n`);
    return;
  }
  throw await notFound(command, nameOrId, outcome.why, 'Revoke');
}

const UNKNOWN = { why: 'unknown' } as const;

async function notFound(
  command: Command,
  nameOrId: string,
  why: 'unknown' | 'ambiguous',
  verb: string,
): Promise<UserError> {
  if (why === 'unknown') {
    return new UserError(
      `There is no active key with the ID or name "${nameOrId}". List the keys with \`undertone keys list\`.`,
    );
  }
  const records = await withStores(command, ({ keys }) => keys.list());
  const ids = records.filter((record) => record.name === nameOrId && stateOf(record) === 'active');
  return new UserError(
    `${ids.length} active keys are named "${nameOrId}". ${verb} one by its ID: ${ids.map(({ id }) => id).join(', ')}.`,
  );
}

/** With `fallback`, no database is created in a folder without one: its name may be mistyped. */
async function withStores<T>(
  command: Command,
  work: (stores: Stores) => Promise<T>,
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
      return await work(stores);
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

function asJson(record: KeyRecord, use: OwnerUse | undefined) {
  const { id, name, owner, limits, createdAt, lastUsedAt, expiresAt, revokedAt } = record;
  const { queued = 0, open = 0, storage = 0, audioSeconds = 0 } = use ?? {};
  return {
    id,
    name,
    owner,
    state: stateOf(record),
    created_at: createdAt,
    last_used_at: lastUsedAt,
    expires_at: expiresAt,
    revoked_at: revokedAt,
    limits,
    use: { queued, open, storage, audio_hours: Number((audioSeconds / 3_600).toFixed(4)) },
  };
}

function table(records: readonly KeyRecord[], use: ReadonlyMap<string, OwnerUse>): string {
  return alignColumns([
    ['ID', 'NAME', 'OWNER', 'LIMITS', 'USE', 'CREATED', 'LAST USED', 'EXPIRES', 'STATE'],
    ...records.map((record) => {
      const { id, name, owner, createdAt, lastUsedAt, expiresAt } = record;
      const times = [createdAt, lastUsedAt, expiresAt].map(minute);
      return [id, name, owner, showLimits(record.limits), showUse(use.get(owner)), ...times, stateOf(record)];
    }),
  ]);
}

function minute(date: Date | null): string {
  return date === null ? 'never' : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
