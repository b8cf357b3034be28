import { DEFAULT_ASYNCH_URL, DEFAULT_DISCRETE_URL } from '@undertone/contract';
import { NUMBERS, numberProblem } from './checks.ts';
import { ConfigError, MissingApiKeyError } from './errors.ts';
import { DEFAULT_LOG_LEVEL, LOG_LEVELS } from './log.ts';
import type { Platform } from './platform/platform.ts';
import type { ClientOptions, LogLevel } from './types.ts';

/** The settings of one client, defaults filled in, not checked yet. */
export interface Config {
  readonly apiKey: string | undefined;
  readonly partSize: number;
  readonly showProgress: boolean;
  readonly maxThreads: number;
  readonly retryAttempts: number;
  readonly discreteUrl: string;
  readonly asynchUrl: string;
  readonly logLevel: LogLevel;
  readonly fetch: typeof globalThis.fetch | undefined;
}

/** Both forms of the constructor's arguments: all the options in one object, or the first five in order. */
export type ClientArguments = [
  optionsOrKey?: ClientOptions | string,
  partSize?: number,
  showProgress?: boolean,
  maxThreads?: number,
  retryAttempts?: number,
];

const OPTION_NAMES: readonly (keyof ClientOptions)[] = [
  'apiKey',
  'partSize',
  'showProgress',
  'maxThreads',
  'retryAttempts',
  'discreteUrl',
  'asynchUrl',
  'logLevel',
  'fetch',
];

export function toOptions(args: ClientArguments): ClientOptions {
  const [first, partSize, showProgress, maxThreads, retryAttempts] = args;
  if (typeof first === 'object' && first !== null) return first;
  return { apiKey: first, partSize, showProgress, maxThreads, retryAttempts };
}

/** Arguments first, then the environment, then defaults. An empty variable is none. */
export function resolveConfig(options: ClientOptions, platform: Platform): Config {
  const env = (name: string) => platform.env(name) || undefined;
  return {
    apiKey: options.apiKey ?? env('SERVICE_API_KEY'),
    partSize: options.partSize ?? NUMBERS.partSize.default,
    showProgress: options.showProgress ?? true,
    maxThreads: options.maxThreads ?? NUMBERS.maxThreads.default,
    retryAttempts: options.retryAttempts ?? NUMBERS.retryAttempts.default,
    discreteUrl: options.discreteUrl ?? env('SERVICE_DISCRETE_URL') ?? DEFAULT_DISCRETE_URL,
    asynchUrl: options.asynchUrl ?? env('SERVICE_ASYNCH_URL') ?? DEFAULT_ASYNCH_URL,
    logLevel: options.logLevel ?? ((env('SERVICE_LOG_LEVEL') ?? DEFAULT_LOG_LEVEL) as LogLevel),
    fetch: options.fetch,
  };
}

/** Names that no setting has. */
export function unknownNames(options: ClientOptions): string[] {
  return Object.keys(options)
    .filter((name) => !OPTION_NAMES.includes(name as keyof ClientOptions))
    .map((name) => `There is no setting ${name}: choose from ${OPTION_NAMES.join(', ')}.`);
}

/** Every problem of the settings but a missing key, each in a sentence that says how to mend it. */
export function settingsProblems(config: Config): string[] {
  return [
    keyShapeProblem(config.apiKey),
    numberProblem('partSize', config.partSize),
    numberProblem('maxThreads', config.maxThreads),
    numberProblem('retryAttempts', config.retryAttempts),
    typeof config.showProgress === 'boolean' ? undefined : 'showProgress is neither true nor false.',
    urlProblem('discreteUrl (SERVICE_DISCRETE_URL)', config.discreteUrl),
    urlProblem('asynchUrl (SERVICE_ASYNCH_URL)', config.asynchUrl),
    LOG_LEVELS.includes(config.logLevel)
      ? undefined
      : `logLevel (SERVICE_LOG_LEVEL) is ${JSON.stringify(config.logLevel)}: choose one of ${LOG_LEVELS.join(', ')}.`,
    config.fetch === undefined || typeof config.fetch === 'function' ? undefined : 'fetch is not a function.',
  ].filter((problem) => problem !== undefined);
}

export const NO_KEY = 'There is no API key: pass apiKey or set SERVICE_API_KEY.';

/** What every operation begins with: sound settings and a key, or nothing is sent. */
export function requireReady(config: Config, problems: readonly string[]): Config & { apiKey: string } {
  if (problems.length > 0) throw new ConfigError(problems);
  if (!config.apiKey) throw new MissingApiKeyError(NO_KEY);
  return { ...config, apiKey: config.apiKey };
}

function keyShapeProblem(key: unknown): string | undefined {
  if (key === undefined || key === '') return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return undefined;
  return 'apiKey (SERVICE_API_KEY) is not a key: it must be one word of plain letters, digits and signs, without spaces or line breaks.';
}

function urlProblem(name: string, value: unknown): string | undefined {
  const hint = 'give a full address that begins with http:// or https://';
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return `${name} is not an address: ${hint}.`;
  if (url.username || url.password) return `${name} holds a user name or password: ${hint}, without them.`;
  return undefined;
}
