import { CLIENT_LIMITS, INTERVAL_SECONDS, isModelId, MODEL_IDS, type Range } from '@undertone/contract';
import { ConfigError } from './errors.ts';

/** Every number a caller may set: its default, its range, and what it counts. */
export const NUMBERS = {
  partSize: { ...CLIENT_LIMITS.partSize, unit: 'bytes' },
  maxThreads: { ...CLIENT_LIMITS.maxThreads, unit: 'parts at the same time' },
  retryAttempts: { ...CLIENT_LIMITS.retryAttempts, unit: 'retries' },
  maxRetries: { ...CLIENT_LIMITS.uploadRetries, unit: 'retries' },
  maxTries: { ...CLIENT_LIMITS.maxTries, unit: 'tries' },
  interval: { ...CLIENT_LIMITS.pollIntervalMs, unit: 'milliseconds' },
  intervalSeconds: { ...INTERVAL_SECONDS, unit: 'seconds' },
} as const satisfies Record<string, Range & { unit: string }>;

export type NumberName = keyof typeof NUMBERS;

/** What is wrong with a number, in a sentence that says how to mend it. */
export function numberProblem(name: NumberName, value: unknown): string | undefined {
  const { min, max, unit } = NUMBERS[name];
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return undefined;
  return `${name} is ${show(value)}: give a whole number of ${unit} from ${min} to ${max}.`;
}

export function modelProblem(model: unknown): string | undefined {
  if (model === undefined || isModelId(model)) return undefined;
  return `There is no model ${show(model)}: choose one of ${MODEL_IDS.join(', ')}.`;
}

/** Refuses names that no option has: a misspelt one would otherwise do nothing, silently. */
export function checkNames<T extends object>(
  operation: string,
  options: T,
  names: readonly (keyof T)[],
): void {
  const unknown = Object.keys(options).filter((name) => !names.includes(name as keyof T));
  throwIfAny(unknown.map((name) => `${operation} has no option ${name}: it takes ${names.join(', ')}.`));
}

export function throwIfAny(problems: readonly (string | undefined)[]): void {
  const found = problems.filter((problem) => problem !== undefined);
  if (found.length > 0) throw new ConfigError(found);
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
