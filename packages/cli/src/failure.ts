import { AudioError } from '@undertone/audio';
import { ModelFilesError } from '@undertone/classifier';
import { UndertoneError } from '@undertone/sdk';
import { SettingsError } from '@undertone/server/settings';

/** Something the user can mend. The message says what is wrong and how; no stack is shown. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** What to print about an error: a sentence where somebody can mend it, everything where it is ours. */
export function explain(error: unknown): string {
  const mendable = [Failure, AudioError, ModelFilesError, SettingsError, UndertoneError].some(
    (kind) => error instanceof kind,
  );
  if (error instanceof UndertoneError && error.code === 'connection_failed') {
    return `${error.message} Is the server running? \`undertone serve\` starts one.`;
  }
  if (mendable) return (error as Error).message;
  return `unexpected: ${error instanceof Error ? error.stack : String(error)}`;
}
