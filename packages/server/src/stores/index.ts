// Opens the stores that the settings name. Imports nothing else of the server: the command line needs no more.
import { join } from 'node:path';
import { SETTINGS, type Settings } from '../settings.ts';
import type { BlobStore } from './blobs.ts';
import { closeOnFailure } from './close-stack.ts';
import type { SqlStores } from './contracts.ts';
import { FileBlobStore } from './files/blobs.ts';
import type { SharedStores } from './postgres/stores.ts';
import type { S3BlobStore } from './s3/blobs.ts';
import { Secrets } from './signing.ts';
import { openSqliteStores } from './sqlite/database.ts';
import { DATABASE_FILE } from './sqlite/open.ts';
import { openThreadedStores } from './sqlite/threaded-stores.ts';

export { DATABASE_FILE };

export interface Stores extends SqlStores {
  readonly blobs: BlobStore;
  readonly secrets: Secrets;
  /** Where keys are kept, in words. */
  readonly place: string;
  /** Only with PostgreSQL. */
  readonly shared?: SharedStores;
}

type StoreSettings = Pick<Settings, 'dataDir'> & Partial<Settings>;

interface StoreOptions {
  /** Where SQLite runs. `thread`: the server, whose main thread never waits for a disk. `local`: commands, and tests with a clock. */
  readonly kind: 'thread' | 'local';
  readonly now?: () => number;
  /** Longer in tests that are not about it. */
  readonly answerMs?: number | undefined;
  /** PostgreSQL was unavailable until now. */
  readonly afterOutage?: boolean;
  /** Why the store thread stopped. It is restarted. */
  readonly onThreadError?: (error: Error) => void;
}

export function openStores(settings: StoreSettings, options: StoreOptions): Promise<Stores> {
  return closeOnFailure(async (opened) => {
    const { secrets, close, ...rows } = await (settings.databaseUrl
      ? openPostgres(settings.databaseUrl, settings, options)
      : openEmbedded(settings, options));
    opened.defer(close);
    const { blobs, close: closeBlobs } = await openBlobs(settings, { ...options, secrets });
    opened.defer(closeBlobs);
    return { ...rows, secrets, blobs, close: () => opened.close() };
  });
}

/** Without `secrets` it signs no upload URLs that anybody accepts. */
export async function openBlobs(
  settings: StoreSettings,
  {
    secrets = Secrets.of(''),
    ...options
  }: Pick<StoreOptions, 'now' | 'answerMs'> & { secrets?: Secrets } = {},
): Promise<{ blobs: BlobStore; close: () => void }> {
  if (settings.s3Bucket) {
    const blobs = await openS3(settings, options);
    return { blobs, close: () => blobs.close() };
  }
  return { blobs: new FileBlobStore(join(settings.dataDir, 'uploads'), secrets), close: () => undefined };
}

type Rows = Omit<Stores, 'blobs'>;

async function openEmbedded(
  { dataDir, secret }: StoreSettings,
  { kind, now, answerMs, onThreadError }: StoreOptions,
): Promise<Rows> {
  const stores =
    kind === 'thread'
      ? await openThreadedStores({ dataDir, answerMs, ...(onThreadError && { onThreadError }) })
      : await openSqliteStores({ dataDir, answerMs, ...(now && { now }) });
  const secrets = secret ? Secrets.of(secret, now) : await Secrets.open(dataDir, now);
  return { ...stores, secrets, place: join(dataDir, DATABASE_FILE) };
}

/** Loaded on demand, as S3 is: one process on one machine needs neither. */
async function openPostgres(
  url: string,
  { secret }: StoreSettings,
  { now, answerMs, afterOutage }: StoreOptions,
): Promise<Rows> {
  const { openPostgresStores } = await import('./postgres/stores.ts');
  const { requests, keys, webhooks, ledger, close, ...stores } = await openPostgresStores({
    url,
    now,
    answerMs,
    afterOutage,
  });
  const secrets = secret ? Secrets.of(secret, now) : new Secrets(await stores.secret(), now);
  return {
    requests,
    keys,
    webhooks,
    ledger,
    close,
    secrets,
    shared: stores,
    place: 'the PostgreSQL database',
  };
}

export async function openS3(
  settings: Partial<Settings>,
  { now, answerMs }: Pick<StoreOptions, 'now' | 'answerMs'> = {},
): Promise<S3BlobStore> {
  const { S3BlobStore } = await import('./s3/blobs.ts');
  return new S3BlobStore({
    bucket: settings.s3Bucket ?? '',
    endpoint: settings.s3Endpoint ?? '',
    publicEndpoint: settings.s3PublicEndpoint ?? '',
    region: settings.s3Region ?? SETTINGS.s3Region.default,
    prefix: settings.s3Prefix ?? SETTINGS.s3Prefix.default,
    addressing: settings.s3Addressing ?? 'auto',
    now,
    answerMs,
  });
}
