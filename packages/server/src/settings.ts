import { readFileSync } from 'node:fs';
import { SETTINGS, type Settings } from './settings-table.ts';

export { byteCount } from './setting-values.ts';
export { defaultLimits, type LogLevel, SETTINGS, type Settings } from './settings-table.ts';

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
