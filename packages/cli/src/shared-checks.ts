import type { Settings } from '@undertone/server';
import { error, type Finding, ok, warning } from './finding.ts';

type S3Settings = Pick<
  Settings,
  's3Bucket' | 's3Endpoint' | 's3PublicEndpoint' | 's3Region' | 's3Prefix' | 's3Addressing'
>;

const OLDEST_POSTGRES = 13;
/** S3 refuses what is signed a quarter of an hour off; upload URLs live an hour. */
const CLOCK = { warningMs: 10_000, errorMs: 300_000 };
const CLOCK_FIX =
  'Set the clocks of all machines by NTP: upload URLs are signed by one and checked by another.';
const RULE = 'See "The bucket" in docs/SCALING.md.';

/** Null: there is none to check, keys and requests are in the data folder. */
export async function checkDatabase({ databaseUrl }: Pick<Settings, 'databaseUrl'>): Promise<Finding | null> {
  if (databaseUrl === '') return null;
  const { inspectPostgres } = await import('@undertone/server/stores/postgres/inspect');
  try {
    const { version, majorVersion, schema, ...found } = await inspectPostgres(databaseUrl);
    const name = `PostgreSQL ${version}`;
    if (majorVersion < OLDEST_POSTGRES) return error(name, `It must be ${OLDEST_POSTGRES} or newer.`);
    if (found.readOnly) return error(`${name} can only be read`, 'Name the primary server, not a replica.');
    const [closed] = found.closedTables;
    if (closed !== undefined) {
      const fix =
        'GRANT USAGE ON SCHEMA undertone and SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA undertone to its user.';
      return error(`${name}: its user may not use the table ${closed}`, fix);
    }
    if (schema.done > schema.newest) {
      const has = `has schema ${schema.done}, this version knows ${schema.newest}`;
      return error(`${name} ${has}`, 'Install the newer version of Undertone.');
    }
    if (schema.done < schema.newest && !found.mayCreate) {
      const fix =
        'Run `undertone migrate` as a user who may create, or GRANT CREATE ON DATABASE to this one.';
      return error(`${name}: its tables are to be made, which its user may not`, fix);
    }
    const due =
      schema.done === schema.newest ? `schema ${schema.done}` : 'its tables are made by the first start';
    return judgeClock(`${name}, ${due}`, found.clockAheadMs);
  } catch (cause) {
    return unusable(
      cause,
      'Check SERVICE_DATABASE_URL, and that the database runs and lets this machine in.',
    );
  }
}

/** Null: recordings are in the data folder. */
export async function checkBucket(
  settings: S3Settings & Pick<Settings, 'corsOrigins' | 'publicUrl'>,
): Promise<Finding | null> {
  const { s3Bucket, corsOrigins, publicUrl } = settings;
  if (s3Bucket === '') return null;
  const { openS3 } = await import('@undertone/server/stores');
  const { inspectS3 } = await import('@undertone/server/stores/s3/inspect');
  const store = await openS3(settings);
  try {
    const origins = corsOrigins.map((origin) => (origin === '*' ? 'https://example.org' : origin));
    if (publicUrl !== '') origins.push(new URL(publicUrl).origin);
    const { uploadProblem, clockAheadMs, corsProblems } = await inspectS3(store, [...new Set(origins)]);
    const found = `${s3Bucket} can be written, read, listed and erased`;
    const clock = judgeClock(found, clockAheadMs ?? 0);
    if (clock.state === 'error') return clock;
    if (uploadProblem !== null) {
      const fix =
        'Clients put parts there themselves: check SERVICE_S3_PUBLIC_ENDPOINT, SERVICE_S3_REGION and SERVICE_S3_ADDRESSING.';
      return error(`${found}, but not by an upload URL: ${uploadProblem}`, fix);
    }
    if (corsProblems[0] !== undefined) {
      const fix = `Browsers cannot upload: let the bucket's CORS rule allow PUT and expose ETag. ${RULE}`;
      return warning(`${found}; CORS: ${corsProblems.join(', ')}`, fix);
    }
    return clock;
  } catch (cause) {
    const permissions = 's3:PutObject, s3:GetObject, s3:DeleteObject and s3:ListBucket';
    return unusable(cause, `Check SERVICE_S3_..., the credentials and their permissions: ${permissions}.`);
  } finally {
    store.close();
  }
}

export function judgeClock(found: string, aheadMs: number): Finding {
  const off = Math.abs(aheadMs);
  if (off < CLOCK.warningMs) return ok(found);
  const words = `${found}; its clock is ${Math.round(off / 1000)} s ${aheadMs > 0 ? 'ahead' : 'behind'}`;
  return off < CLOCK.errorMs ? warning(words, CLOCK_FIX) : error(words, CLOCK_FIX);
}

/** Names the reason that the store found, and what it heard itself. */
function unusable(cause: unknown, fix: string): Finding {
  const { message, reason, cause: deeper } = cause as Error & { reason?: string };
  const detail = ((reason && (deeper as Error)?.message) || message).split('\n', 1)[0];
  return error(reason === undefined ? `cannot be used: ${detail}` : `${reason} (${detail})`, fix);
}
