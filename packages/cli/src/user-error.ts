import { AudioError } from '@undertone/audio';
import { ModelFilesError } from '@undertone/classifier';
import { ConfigError, MissingApiKeyError, UndertoneError } from '@undertone/sdk';
import { SettingsError } from '@undertone/server/settings';

/** Something the user can fix. The message says what happened and what to do next; no stack is shown. */
export class UserError extends Error {
  override readonly name = 'UserError';
}

const EXPECTED = [UserError, AudioError, ModelFilesError, SettingsError, UndertoneError];

/** Does its message tell the user what to do? Any other error is our bug. */
export function isExpected(error: unknown): error is Error {
  return EXPECTED.some((kind) => error instanceof kind);
}

/** What to print about an error: a sentence for the user, or a stack where it is our bug. */
export function explain(error: unknown): string {
  if (error instanceof SettingsError) {
    const { problems } = error;
    return problems.length === 1 ? `${problems[0]}.` : `Invalid settings:\n- ${problems.join('\n- ')}`;
  }
  if (isExpected(error)) return error.message;
  return `Unexpected error: ${error instanceof Error ? error.stack : String(error)}`;
}

/** Was it the command line, or a variable that stands for a flag, that makes no sense? */
export function isUsageError(error: unknown): boolean {
  if (error instanceof MissingApiKeyError) return false;
  return error instanceof SettingsError || error instanceof ConfigError;
}
