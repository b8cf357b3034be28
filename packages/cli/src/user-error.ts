import { AudioError } from '@undertone/audio';
import { ModelFilesError } from '@undertone/classifier';
import { ConfigError, MissingApiKeyError, UndertoneError } from '@undertone/sdk';
import { SettingsError } from '@undertone/server/settings';

/** An error that the user can fix. Its message says what happened and what to do; no stack is printed. */
export class UserError extends Error {
  override readonly name = 'UserError';
}

const EXPECTED = [UserError, AudioError, ModelFilesError, SettingsError, UndertoneError];

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
  if (isExpected(error)) return error.message;
  return `Unexpected error: ${error instanceof Error ? error.stack : String(error)}`;
}

/** True if a flag, or an environment variable in its place, is invalid. */
export function isUsageError(error: unknown): boolean {
  if (error instanceof MissingApiKeyError) return false;
  return error instanceof SettingsError || error instanceof ConfigError;
}
