import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEFAULT_PORT, DEFAULT_WEIGHTS } from '@undertone/contract';
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

const DEFAULT_DATA_DIR = fileURLToPath(new URL('../../../.undertone', import.meta.url));

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
    'Folder for keys and uploads; by default .undertone in the clone',
    (dir) => resolve(dir || DEFAULT_DATA_DIR),
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

/** Lists every invalid value, not only the first. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `The server cannot start with these settings:\n${problems.map((line) => `  - ${line}`).join('\n')}`,
    );
    this.problems = problems;
  }
}

/** An empty variable counts as unset. */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const problems: string[] = [];
  const entries = Object.entries(SETTINGS).map(([name, { env: variable, default: fallback, parse }]) => {
    let given = env[variable]?.trim();
    try {
      if (SECRET_SETTINGS.includes(variable)) given = readSecret(given, env[`${variable}_FILE`]?.trim());
    } catch (error) {
      problems.push(`${variable}_FILE ${(error as Error).message}`);
    }
    try {
      return [name, parse(given || fallback)];
    } catch (error) {
      // Secrets are never printed, not even invalid ones.
      const shown = SECRET_SETTINGS.includes(variable) ? '' : `, not ${JSON.stringify(given)}`;
      problems.push(`${variable} must be ${(error as Error).message}${shown}`);
      return [name, undefined];
    }
  });
  const settings = Object.fromEntries(entries) as Settings;
  problems.push(...contradictions(settings));
  if (problems.length > 0) throw new SettingsError(problems);
  return settings;
}

const SECRET_SETTINGS = [SETTINGS.apiKey, SETTINGS.databaseUrl, SETTINGS.secret].map(({ env }) => env);

/** For the server alone: other commands work on a database without a bucket. */
export function requireSharedRecordings({ databaseUrl, s3Bucket, singleProcess }: Settings): void {
  if (databaseUrl === '' || s3Bucket !== '' || singleProcess) return;
  throw new SettingsError([
    'SERVICE_DATABASE_URL needs SERVICE_S3_BUCKET, so that every process can read the recordings; for one process alone, set SERVICE_SINGLE_PROCESS=true',
  ]);
}

/** A file keeps a secret out of the environment, which other processes and crash reports can show. */
function readSecret(given: string | undefined, file: string | undefined): string | undefined {
  if (!file) return given;
  if (given) throw new Error('and the setting itself are both set: keep one');
  let content: string;
  try {
    content = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Error(`must name a readable file (${(error as NodeJS.ErrnoException).code})`);
  }
  if (content === '') throw new Error('names an empty file');
  return content;
}

function contradictions({
  role,
  databaseUrl,
  s3Bucket,
  s3Endpoint,
  s3PublicEndpoint,
  port,
  operationsPort,
}: Settings): string[] {
  const problems: string[] = [];
  if (operationsPort > 0 && operationsPort === port) {
    problems.push('SERVICE_OPERATIONS_PORT must be another port than SERVICE_PORT');
  }
  if ((role === 'api' || role === 'worker') && !(databaseUrl && s3Bucket)) {
    problems.push(
      `SERVICE_ROLE=${role} needs SERVICE_DATABASE_URL and SERVICE_S3_BUCKET, which all processes share`,
    );
  }
  if ((s3Endpoint || s3PublicEndpoint) && !s3Bucket) {
    problems.push('SERVICE_S3_BUCKET must be set when another SERVICE_S3_... is');
  }
  return problems;
}

function setting<T>(
  env: string,
  fallback: string,
  description: string,
  parse: (text: string) => T,
): Setting<T> {
  return { env, default: fallback, description, parse };
}

function integer(min: number, max: number): (text: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new Error(`a whole number from ${min} to ${max}`);
    }
    return number;
  };
}

function oneOf<T extends string>(choices: readonly T[]): (text: string) => T {
  return (value) => {
    // Python programs write log levels in capitals, and may share the variable.
    const choice = choices.find((candidate) => candidate === value.toLowerCase());
    if (choice === undefined) throw new Error(`one of ${choices.join(', ')}`);
    return choice;
  };
}

function trueOrFalse(value: string): boolean {
  return oneOf(['true', 'false'])(value) === 'true';
}

function autoOr(min: number, max: number): (text: string) => number | 'auto' {
  return (value) => {
    if (value === 'auto') return value;
    try {
      return integer(min, max)(value);
    } catch (error) {
      throw new Error(`auto or ${(error as Error).message}`);
    }
  };
}

function weightsName(value: string): string {
  if (!/^[\w.-]{1,100}$/.test(value)) throw new Error('the name of weights in the models folder');
  return value;
}

export function byteCount(value: string): number {
  const match = /^(\d{1,15})\s*([KMGT]?)(i?)B?$/i.exec(value);
  if (match === null) throw new Error('a number of bytes, such as 10737418240 or 10GiB');
  const [, digits, unit = '', binary] = match;
  return Number(digits) * (binary ? 1024 : 1000) ** ['', 'K', 'M', 'G', 'T'].indexOf(unit.toUpperCase());
}

function cidrs(value: string): readonly string[] {
  const list = value.split(',').map((entry) => entry.trim());
  return list.filter(Boolean).map((entry) => {
    const [address = '', bits, more] = entry.split('/');
    const longest = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
    const valid = bits === undefined ? longest > 0 : /^\d{1,3}$/.test(bits) && Number(bits) <= longest;
    if (!valid || more !== undefined) throw new Error('addresses or CIDRs such as 10.0.0.0/8');
    return entry;
  });
}

function host(value: string): string {
  if (!/^[\w.:%-]+$/.test(value)) throw new Error('a host name or an IP address');
  return value;
}

function apiKey(value: string): string {
  // Header values are printable ASCII; shorter keys could be guessed.
  if (value !== '' && !/^[\x21-\x7e]{16,256}$/.test(value)) {
    throw new Error('16 to 256 printable characters without spaces');
  }
  return value;
}

function secret(value: string): string {
  if (value !== '' && value.length < 16) throw new Error('16 characters or more');
  return value;
}

function databaseUrl(value: string): string {
  if (value !== '' && !/^postgres(ql)?:\/\/./.test(value)) {
    throw new Error('an address such as postgres://user:password@host:5432/name');
  }
  return value;
}

function bucket(value: string): string {
  if (value !== '' && !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(value)) {
    throw new Error('the name of an S3 bucket: 3 to 63 lowercase letters, digits, dots and hyphens');
  }
  return value;
}

function region(value: string): string {
  if (!/^[a-z0-9-]{1,64}$/.test(value)) throw new Error('the name of a region such as eu-north-1');
  return value;
}

/** Needs no escaping in a URL. The result ends in a slash. */
function prefix(value: string): string {
  if (!/^[\w-][\w.-]*(\/[\w-][\w.-]*)*\/?$/.test(value)) {
    throw new Error('letters, digits, dots, hyphens and slashes, such as undertone/');
  }
  return value.replace(/\/?$/, '/');
}

function baseUrl(value: string): string {
  if (value === '') return value;
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error('an http or https address such as https://voice.example.org');
  }
  return url.href.replace(/\/+$/, '');
}

function origins(value: string): readonly string[] {
  const list = value.split(',').map((entry) => entry.trim());
  return list.filter(Boolean).map((entry) => {
    if (entry === '*') return entry;
    const url = URL.parse(entry);
    if (!url || url.origin === 'null' || !/^\/?$/.test(url.pathname) || url.search || url.hash) {
      throw new Error('origins such as https://app.example.org, separated by commas, or *');
    }
    return url.origin;
  });
}

/** Variables of the clients; they may be set in the same shell. */
const CLIENT_VARIABLES = ['SERVICE_URL', 'SERVICE_DISCRETE_URL', 'SERVICE_ASYNCH_URL'];

/** Warns of each unknown `SERVICE_...` variable: most are misspelt and would silently do nothing. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = [
    ...Object.values(SETTINGS).map((setting) => setting.env),
    ...SECRET_SETTINGS.map((name) => `${name}_FILE`),
    ...CLIENT_VARIABLES,
  ];
  return Object.keys(env)
    .filter((name) => name.startsWith('SERVICE_') && !known.includes(name))
    .map((name) => {
      const nearest = known.toSorted((a, b) => distance(name, a) - distance(name, b))[0] as string;
      const hint = distance(name, nearest) <= 4 ? ` Did you mean ${nearest}?` : '';
      return `${name} is not a setting and has no effect.${hint}`;
    });
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
