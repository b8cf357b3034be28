import {
  ASYNCH_LIMITS,
  CHANNEL_MODES,
  CLIENT_LIMITS,
  DEFAULT_URL,
  INTERVAL_SECONDS,
  isModelId,
  LIST_LIMIT,
  MODEL_IDS,
  PATHS,
  type Range,
  TOKEN_SECONDS,
} from '@undertone/contract';
import { ConfigError, MissingApiKeyError } from './errors.ts';
import { DEFAULT_LOG_LEVEL, isLogLevel, LOG_LEVELS, LOGGER_METHODS } from './log.ts';
import type { Platform } from './platform/platform.ts';
import type { ClientOptions, Logger, LogLevel, RecordingOptions } from './types.ts';
import { joinUrl } from './urls.ts';

const NO_KEY = 'The API key is missing: pass apiKey or set SERVICE_API_KEY.';

/** Default, range and unit of every numeric option. */
export const NUMBERS = {
  partSize: { ...CLIENT_LIMITS.partSize, unit: 'bytes' },
  maxThreads: { ...CLIENT_LIMITS.maxThreads, unit: 'concurrent parts' },
  retryAttempts: { ...CLIENT_LIMITS.retryAttempts, unit: 'retries' },
  maxRetries: { ...CLIENT_LIMITS.uploadRetries, unit: 'retries' },
  maxTries: { ...CLIENT_LIMITS.maxTries, unit: 'tries' },
  interval: { ...CLIENT_LIMITS.pollIntervalMs, unit: 'milliseconds' },
  intervalSeconds: { ...INTERVAL_SECONDS, unit: 'seconds' },
  concurrency: { default: 4, min: 1, max: 64, unit: 'concurrent recordings' },
  limit: { ...LIST_LIMIT, unit: 'requests' },
  expiresIn: { ...TOKEN_SECONDS, unit: 'seconds' },
} as const satisfies Record<string, Range & { unit: string }>;

export type NumberName = keyof typeof NUMBERS;

/** The settings of a client with defaults filled in, not validated yet. */
export interface Config {
  readonly apiKey: string | undefined;
  readonly partSize: number;
  readonly showProgress: boolean;
  readonly maxThreads: number;
  readonly retryAttempts: number;
  readonly baseUrl: string;
  readonly discreteUrl: string;
  readonly asynchUrl: string;
  readonly logLevel: LogLevel;
  readonly timeout: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: Logger | undefined;
  readonly fetch: typeof globalThis.fetch | undefined;
}

/** The constructor takes either one object or the first five options in order. */
export type ClientArguments = [
  optionsOrKey?: ClientOptions | string,
  partSize?: number,
  showProgress?: boolean,
  maxThreads?: number,
  retryAttempts?: number,
];

export function toOptions(args: ClientArguments): ClientOptions {
  const [first, partSize, showProgress, maxThreads, retryAttempts] = args;
  if (typeof first === 'object' && first !== null) return first;
  return { apiKey: first, partSize, showProgress, maxThreads, retryAttempts };
}

/** Arguments take precedence over the environment, which takes precedence over defaults. Empty variables are ignored. */
export function resolveConfig(options: ClientOptions, platform: Platform): Config {
  const env = (name: string) => platform.env(name) || undefined;
  const baseUrl = options.baseUrl ?? env('SERVICE_URL') ?? DEFAULT_URL;
  // An invalid baseUrl is reported once, not again for the two URLs derived from it.
  const base = urlProblem('baseUrl', baseUrl) ? DEFAULT_URL : baseUrl;
  return {
    apiKey: options.apiKey ?? env('SERVICE_API_KEY'),
    partSize: options.partSize ?? NUMBERS.partSize.default,
    showProgress: options.showProgress ?? true,
    maxThreads: options.maxThreads ?? NUMBERS.maxThreads.default,
    retryAttempts: options.retryAttempts ?? NUMBERS.retryAttempts.default,
    baseUrl,
    discreteUrl: options.discreteUrl ?? env('SERVICE_DISCRETE_URL') ?? joinUrl(base, PATHS.discrete),
    asynchUrl: options.asynchUrl ?? env('SERVICE_ASYNCH_URL') ?? joinUrl(base, PATHS.asynch),
    logLevel: options.logLevel ?? ((env('SERVICE_LOG_LEVEL') ?? DEFAULT_LOG_LEVEL) as LogLevel),
    timeout: options.timeout,
    headers: options.headers ?? {},
    logger: options.logger,
    fetch: options.fetch,
  };
}

/** All invalid settings, except a missing key; each as a sentence that says how to fix it. */
export function configProblems(options: ClientOptions, config: Config): string[] {
  const names = Object.keys(config);
  return [
    ...Object.keys(options)
      .filter((name) => !names.includes(name))
      .map((name) => `Unknown setting ${name}: choose from ${names.join(', ')}.`),
    keyShapeProblem(config.apiKey),
    numberProblem('partSize', config.partSize),
    numberProblem('maxThreads', config.maxThreads),
    numberProblem('retryAttempts', config.retryAttempts),
    typeof config.showProgress === 'boolean' ? undefined : 'showProgress must be true or false.',
    urlProblem('baseUrl (SERVICE_URL)', config.baseUrl),
    urlProblem('discreteUrl (SERVICE_DISCRETE_URL)', config.discreteUrl),
    urlProblem('asynchUrl (SERVICE_ASYNCH_URL)', config.asynchUrl),
    isLogLevel(config.logLevel)
      ? undefined
      : `logLevel (SERVICE_LOG_LEVEL) is ${show(config.logLevel)}: choose one of ${LOG_LEVELS.join(', ')}.`,
    timeoutProblem(config.timeout),
    headersProblem(config.headers),
    config.logger === undefined || LOGGER_METHODS.every((name) => typeof config.logger?.[name] === 'function')
      ? undefined
      : `logger must have the methods ${LOGGER_METHODS.join(', ')}.`,
    config.fetch === undefined || typeof config.fetch === 'function'
      ? undefined
      : 'fetch must be a function.',
  ].filter((problem) => problem !== undefined);
}

/** Throws one error with all problems, including a missing key. */
export function throwIfInvalid({ apiKey }: Config, problems: readonly string[]): void {
  throwIfAny(apiKey ? problems : [NO_KEY, ...problems]);
}

/** Called before each operation: without valid settings and a key, nothing is sent. */
export function requireReady(config: Config, problems: readonly string[]): Config & { apiKey: string } {
  throwIfAny(problems);
  if (!config.apiKey) throw new MissingApiKeyError(NO_KEY);
  return { ...config, apiKey: config.apiKey };
}

export function numberProblem(name: NumberName, value: unknown): string | undefined {
  return rangeProblem(name, value, NUMBERS[name]);
}

export function rangeProblem(
  name: string,
  value: unknown,
  { min, max, unit }: { min: number; max: number; unit: string },
): string | undefined {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return undefined;
  return `${name} is ${show(value)}: pass a whole number of ${unit} from ${min} to ${max}.`;
}

/** The longest delay of a timer, 24 days. */
const TIMEOUT = { min: 1, max: 2 ** 31 - 1, unit: 'milliseconds' } as const;

export function timeoutProblem(timeout: unknown): string | undefined {
  return timeout === undefined ? undefined : rangeProblem('timeout', timeout, TIMEOUT);
}

function headersProblem(headers: unknown): string | undefined {
  const hint = 'headers must be an object of header names and their values';
  if (typeof headers !== 'object' || headers === null) return `${hint}.`;
  // Simulated pages have no `Headers`.
  if (Object.keys(headers).length === 0) return undefined;
  try {
    new Headers(headers as Record<string, string>);
    return undefined;
  } catch {
    // The message of the platform would show the value, which may be a secret.
    return `${hint}: one of them is not valid in HTTP.`;
  }
}

export function modelProblem(model: unknown): string | undefined {
  if (model === undefined || isModelId(model)) return undefined;
  return `Unknown model ${show(model)}: choose one of ${MODEL_IDS.join(', ')}.`;
}

export function choiceProblem(name: string, value: unknown, choices: readonly unknown[]): string | undefined {
  if (value === undefined || choices.includes(value)) return undefined;
  return `${name} is ${show(value)}: choose one of ${choices.join(', ')}.`;
}

export function recordingProblems(options: RecordingOptions): (string | undefined)[] {
  const { model, intervalSeconds, channels, label, webhookUrl } = options;
  return [
    modelProblem(model),
    intervalSeconds === undefined ? undefined : numberProblem('intervalSeconds', intervalSeconds),
    choiceProblem('channels', channels, CHANNEL_MODES),
    labelProblem(label),
    webhookUrl === undefined ? undefined : urlProblem('webhookUrl', webhookUrl),
  ];
}

function labelProblem(label: unknown): string | undefined {
  const max = ASYNCH_LIMITS.maxLabelLength;
  if (label === undefined || (typeof label === 'string' && label !== '' && [...label].length <= max)) {
    return undefined;
  }
  return `label is ${show(label)}: pass 1 to ${max} characters.`;
}

/** Rejects unknown options: a misspelt one would otherwise be ignored silently. */
export function checkNames<T extends object>(
  operation: string,
  options: T,
  names: readonly (keyof T)[],
): void {
  const unknown = Object.keys(options).filter((name) => !names.includes(name as keyof T));
  throwIfAny(unknown.map((name) => `${operation} has no option ${name}: choose from ${names.join(', ')}.`));
}

export function throwIfAny(problems: readonly (string | undefined)[]): void {
  const found = problems.filter((problem) => problem !== undefined);
  if (found.length > 0) throw new ConfigError(found);
}

function keyShapeProblem(key: unknown): string | undefined {
  if (key === undefined || key === '') return undefined;
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return undefined;
  return 'apiKey (SERVICE_API_KEY) is invalid: it must consist of printable ASCII characters without spaces or line breaks.';
}

function urlProblem(name: string, value: unknown): string | undefined {
  const hint = 'pass a full URL that begins with http:// or https://';
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return `${name} is not a URL: ${hint}.`;
  if (url.username || url.password) return `${name} contains a user name or password: ${hint} without them.`;
  return undefined;
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
