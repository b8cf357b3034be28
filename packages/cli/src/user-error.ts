import { AudioError } from '@undertone/audio';
import { ModelFilesError } from '@undertone/classifier';
import { ConfigError, MissingApiKeyError, UndertoneError } from '@undertone/sdk';
import { SettingsError } from '@undertone/server/settings';

/** An error that the user can fix. Its message says what happened and what to do; no stack is printed. */
export class UserError extends Error {
  override readonly name: string = 'UserError';
}

/** The command line is wrong: nothing was done. */
export class UsageError extends UserError {
  override readonly name: string = 'UsageError';
}

const EXPECTED = [UserError, AudioError, ModelFilesError, SettingsError, UndertoneError];

/** Names of the client library, and what they are on the command line. */
const WORDS = [
  [/SERVICE_URL \(option baseUrl\)/g, 'SERVICE_URL (or --url)'],
  [/\b(?:baseUrl|asynchUrl|discreteUrl|apiKey|logLevel) \((SERVICE_\w+)\)/g, '$1'],
  [/pass apiKey or set SERVICE_API_KEY/g, 'set SERVICE_API_KEY'],
  [/\bwebhookUrl\b/g, '--webhook'],
  [/\bintervalSeconds\b/g, '--interval'],
] as const;

/** True if the message tells the user what to do. Any other error is a bug. */
export function isExpected(error: unknown): error is Error {
  return EXPECTED.some((kind) => error instanceof kind);
}

/** The text to print: a message for the user, or the stack of a bug. */
export function explain(error: unknown): string {
  if (error instanceof SettingsError) {
    const { problems } = error;
    return problems.length === 1 ? `${problems[0]}.` : `Invalid settings:\n- ${problems.join('\n- ')}`;
  }
  if (error instanceof UndertoneError) {
    return WORDS.reduce((text, [name, word]) => text.replace(name, word), error.message);
  }
  if (isExpected(error)) return error.message;
  return `Unexpected error: ${error instanceof Error ? error.stack : String(error)}`;
}

/** True if the command line, or an environment variable in place of a flag, is invalid. */
export function isUsageError(error: unknown): boolean {
  if (error instanceof MissingApiKeyError) return false;
  return [UsageError, SettingsError, ConfigError].some((kind) => error instanceof kind);
}
