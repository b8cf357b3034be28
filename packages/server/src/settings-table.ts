import { homedir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEFAULT_PORT, DEFAULT_WEIGHTS } from '@undertone/contract';
import {
  apiKey,
  autoOr,
  baseUrl,
  bucket,
  byteCount,
  cidrs,
  databaseUrl,
  host,
  integer,
  oneOf,
  origins,
  prefix,
  region,
  secret,
  trueOrFalse,
  weightsName,
} from './setting-values.ts';
import type { KeyLimits } from './stores/key-limits.ts';

interface Setting<T> {
  readonly env: string;
  readonly description: string;
  /** As written in the environment; empty if the setting is off or computed at startup. */
  readonly default: string;
  /** Throws an Error whose message completes "SERVICE_X must be ...". */
  readonly parse: (text: string) => T;
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const ROLES = ['all', 'api', 'worker'] as const;
type Role = (typeof ROLES)[number];
type S3Addressing = 'auto' | 'path' | 'virtual';

const text = (value: string) => value;

/** Every setting of the server. `undertone serve --help` prints this table. */
export const SETTINGS = {
  host: setting(
    'SERVICE_HOST',
    '127.0.0.1',
    'Address to listen on; 0.0.0.0 is every address of this machine',
    host,
  ),
  port: setting(
    'SERVICE_PORT',
    String(DEFAULT_PORT),
    'Port to listen on; 0 picks a free one',
    integer(0, 65_535),
  ),
  operationsPort: setting(
    'SERVICE_OPERATIONS_PORT',
    '0',
    'Port of /metrics, /readyz and /healthz alone; 0 serves them with everything else',
    integer(0, 65_535),
  ),
  metricsOwners: setting(
    'SERVICE_METRICS_OWNERS',
    'false',
    'true shows the use of each owner of keys in /metrics, by name',
    trueOrFalse,
  ),
  publicUrl: setting(
    'SERVICE_PUBLIC_URL',
    '',
    'Public URL of this server, if it is not http://HOST:PORT',
    baseUrl,
  ),
  dataDir: setting(
    'SERVICE_DATA_DIR',
    '',
    'Folder for keys and uploads; by default .undertone in the clone (installed: in the home folder)',
    (dir) => resolve(dir || defaultDataDir()),
  ),
  apiKey: setting(
    'SERVICE_API_KEY',
    '',
    'An extra key to accept, beside those made with `undertone keys`',
    apiKey,
  ),
  weights: setting(
    'SERVICE_WEIGHTS',
    DEFAULT_WEIGHTS,
    'Model weights: research (non-commercial), open (commercial use allowed), or others in the models folder',
    weightsName,
  ),
  modelsDir: setting('SERVICE_MODELS_DIR', '', 'Folder with model files, if not the shipped ones', text),
  workers: setting('SERVICE_WORKERS', 'auto', 'Inference threads; auto is one per core', autoOr(1, 256)),
  queueLimit: setting(
    'SERVICE_QUEUE_LIMIT',
    '64',
    'Short recordings that may wait for a thread; one more gets a 503',
    integer(1, 10_000),
  ),
  asynchJobs: setting(
    'SERVICE_ASYNCH_JOBS',
    '2',
    'Long recordings processed at the same time, and one of each further key, up to 6; they share the inference threads',
    integer(1, 64),
  ),
  storageLimit: setting(
    'SERVICE_STORAGE_LIMIT',
    String(10 * 1024 ** 3),
    'Bytes of recordings that one owner of keys may store, those still arriving included; units such as 10GiB work too; 0 is no limit',
    byteCount,
  ),
  queuedLimit: setting(
    'SERVICE_QUEUED_LIMIT',
    '1000',
    'Long recordings that may wait for a worker, for each owner of keys; 0 is no limit',
    integer(0, 1_000_000),
  ),
  openLimit: setting(
    'SERVICE_OPEN_LIMIT',
    '1000',
    'Unfinished uploads for each owner of keys; 0 is no limit',
    integer(0, 1_000_000),
  ),
  audioHoursLimit: setting(
    'SERVICE_AUDIO_HOURS_LIMIT',
    '0',
    'Hours of audio in 24 hours for each owner of keys; 0 is no limit',
    integer(0, 1_000_000),
  ),
  rateLimit: setting(
    'SERVICE_RATE_LIMIT',
    '0',
    'Requests per minute for each key; 0 is no limit',
    integer(0, 1_000_000),
  ),
  streamLimit: setting(
    'SERVICE_STREAM_LIMIT',
    '100',
    'Open streams for each key; 0 is no limit',
    integer(0, 1_000_000),
  ),
  streamTotalLimit: setting(
    'SERVICE_STREAM_TOTAL_LIMIT',
    'auto',
    'Open streams of this process, one more gets a 503; auto is 50 per inference thread, 0 is no limit',
    autoOr(0, 1_000_000),
  ),
  socketIo: setting(
    'SERVICE_SOCKET_IO',
    'true',
    'false turns off /socket.io/, which only existing Socket.IO clients need',
    trueOrFalse,
  ),
  webhookPrivate: setting(
    'SERVICE_WEBHOOK_PRIVATE',
    'false',
    'true also allows webhooks to http, private and loopback addresses',
    trueOrFalse,
  ),
  corsOrigins: setting(
    'SERVICE_CORS_ORIGINS',
    '',
    'Origins whose pages may call from a browser, separated by commas, or *',
    origins,
  ),
  trustedProxies: setting(
    'SERVICE_TRUSTED_PROXIES',
    '',
    'Proxies whose X-Forwarded-For and -Proto are trusted: addresses or CIDRs, separated by commas',
    cidrs,
  ),
  role: setting(
    'SERVICE_ROLE',
    'all',
    `What this process does: all, api (does not process long recordings), or worker (only processes them; HTTP for health and metrics)`,
    oneOf<Role>(ROLES),
  ),
  databaseUrl: setting(
    'SERVICE_DATABASE_URL',
    '',
    'PostgreSQL for keys and requests, such as postgres://user:password@host/name; empty is a file in the data folder',
    databaseUrl,
  ),
  singleProcess: setting(
    'SERVICE_SINGLE_PROCESS',
    'false',
    'true allows PostgreSQL without a bucket: recordings stay in the data folder, and a second process is refused',
    trueOrFalse,
  ),
  s3Bucket: setting('SERVICE_S3_BUCKET', '', 'S3 bucket for recordings; empty is the data folder', bucket),
  s3Endpoint: setting('SERVICE_S3_ENDPOINT', '', 'URL of the S3 server, if it is not AWS', baseUrl),
  s3PublicEndpoint: setting(
    'SERVICE_S3_PUBLIC_ENDPOINT',
    '',
    'URL of the S3 server for clients, if it is another one',
    baseUrl,
  ),
  s3Region: setting('SERVICE_S3_REGION', 'us-east-1', 'Region of the bucket', region),
  s3Prefix: setting(
    'SERVICE_S3_PREFIX',
    'undertone/',
    'Prefix of all object names; keep nothing else under it',
    prefix,
  ),
  s3Addressing: setting(
    'SERVICE_S3_ADDRESSING',
    'auto',
    'path (host/bucket), virtual (bucket.host), or auto: virtual at AWS, path elsewhere',
    oneOf<S3Addressing>(['auto', 'path', 'virtual']),
  ),
  secret: setting(
    'SERVICE_SECRET',
    '',
    'Secret that signs upload URLs and tokens, the same in every process; if empty, one is created and stored with the keys',
    secret,
  ),
  logLevel: setting(
    'SERVICE_LOG_LEVEL',
    'info',
    `Log level: ${LOG_LEVELS.join(', ')}`,
    oneOf<LogLevel>(LOG_LEVELS),
  ),
  drainSeconds: setting(
    'SERVICE_DRAIN_SECONDS',
    '0',
    'Seconds to keep answering after a stop signal, with /readyz at 503, so that load balancers stop sending traffic first',
    integer(0, 600),
  ),
  finishSeconds: setting(
    'SERVICE_FINISH_SECONDS',
    '5',
    'Seconds that requests in flight have to finish after that, such as a long recording in one call; the server stops as soon as none is left',
    integer(0, 3_600),
  ),
};

export type Settings = { [K in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[K]['parse']> };

/** The limits of a key that names none. */
export function defaultLimits(settings: Settings): KeyLimits {
  return {
    rate: settings.rateLimit,
    streams: settings.streamLimit,
    queued: settings.queuedLimit,
    open: settings.openLimit,
    storage: settings.storageLimit,
    audio_hours: settings.audioHoursLimit,
  };
}

/** An installed package is replaced by every update, so its data must be elsewhere. */
function defaultDataDir(): string {
  const installed = import.meta.dirname.split(sep).includes('node_modules');
  return installed
    ? join(homedir(), '.undertone')
    : fileURLToPath(new URL('../../../.undertone', import.meta.url));
}

function setting<T>(
  env: string,
  fallback: string,
  description: string,
  parse: (text: string) => T,
): Setting<T> {
  return { env, default: fallback, description, parse };
}
