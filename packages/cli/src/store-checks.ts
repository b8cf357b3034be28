import type { Settings } from '@undertone/server';

type S3Settings = Pick<
  Settings,
  's3Bucket' | 's3Endpoint' | 's3PublicEndpoint' | 's3Region' | 's3Prefix' | 's3Addressing'
>;

/** Result of one check and, unless it is ok, how to fix it. */
export interface Finding {
  readonly state: 'ok' | 'warning' | 'error';
  readonly found: string;
  readonly fix?: string;
}

export function ok(found: string): Finding {
  return { state: 'ok', found };
}

export function warning(found: string, fix: string): Finding {
  return { state: 'warning', found, fix };
}

export function error(found: string, fix: string): Finding {
  return { state: 'error', found, fix };
}

const OLDEST_POSTGRES = 13;
/** S3 refuses signatures that are 15 minutes off; upload URLs are valid for an hour. */
const CLOCK = { warningMs: 10_000, errorMs: 300_000 };
const CLOCK_FIX =
  'Synchronise the clocks of all machines with NTP: one machine signs upload URLs, another verifies them.';
const RULE = 'See "The bucket" in docs/SCALING.md.';

/** Null if keys and requests are in the data folder. */
export async function checkDatabase({ databaseUrl }: Pick<Settings, 'databaseUrl'>): Promise<Finding | null> {
  if (databaseUrl === '') return null;
  const { inspectPostgres } = await import('@undertone/server/stores/postgres/inspect');
  try {
    const { version, majorVersion, schema, ...found } = await inspectPostgres(databaseUrl);
    const name = `PostgreSQL ${version}`;
    if (majorVersion < OLDEST_POSTGRES)
      return error(name, `Upgrade to PostgreSQL ${OLDEST_POSTGRES} or newer.`);
    if (found.readOnly) return error(`${name} is read-only`, 'Use the primary server, not a replica.');
    const [closed] = found.closedTables;
    if (closed !== undefined) {
      const fix =
        'GRANT USAGE ON SCHEMA undertone and SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA undertone to its user.';
      return error(`${name}: its user has no access to the table ${closed}`, fix);
    }
    if (schema.done > schema.newest) {
      const has = `has schema ${schema.done}, newer than this version's ${schema.newest}`;
      return error(`${name} ${has}`, 'Install the newer version of Undertone.');
    }
    if (schema.done < schema.newest && !found.mayCreate) {
      const fix = 'Run `undertone migrate` as a user with CREATE, or GRANT CREATE ON DATABASE to this one.';
      return error(`${name}: the tables are missing, and its user may not create them`, fix);
    }
    const due =
      schema.done === schema.newest ? `schema ${schema.done}` : 'the first start creates its tables';
    return judgeClock(`${name}, ${due}`, found.clockAheadMs);
  } catch (cause) {
    return unusable(
      cause,
      'Check SERVICE_DATABASE_URL, and that the database is running and accepts this machine.',
    );
  }
}

/** Null if recordings are in the data folder. */
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
    const found = `${s3Bucket} can be written, read, listed and deleted`;
    const clock = judgeClock(found, clockAheadMs ?? 0);
    if (clock.state === 'error') return clock;
    if (uploadProblem !== null) {
      const fix =
        'Clients upload parts to the bucket directly: check SERVICE_S3_PUBLIC_ENDPOINT, SERVICE_S3_REGION and SERVICE_S3_ADDRESSING.';
      return error(`${found}, but not through an upload URL: ${uploadProblem}`, fix);
    }
    if (corsProblems[0] !== undefined) {
      const fix = `Browsers cannot upload: allow PUT and expose ETag in the bucket's CORS rule. ${RULE}`;
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

/** The store's own reason, with the underlying error. */
function unusable(cause: unknown, fix: string): Finding {
  const { message, reason, cause: deeper } = cause as Error & { reason?: string };
  const detail = ((reason && (deeper as Error)?.message) || message).split('\n', 1)[0];
  return error(reason === undefined ? `cannot be used: ${detail}` : `${reason} (${detail})`, fix);
}
