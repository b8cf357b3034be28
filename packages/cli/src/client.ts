import { DEFAULT_PORT } from '@undertone/contract';
import { type AsynchResult, EmotionClient, type ProgressListener } from '@undertone/sdk';
import { readSettings } from '@undertone/server/settings';
import { type Command, Option } from 'commander';
import { UserError } from './user-error.ts';

export function addServerFlags(command: Command): Command {
  return command.addOption(
    new Option('--url <url>', 'address of the server')
      .env('SERVICE_URL')
      .default(undefined, `http://127.0.0.1:${DEFAULT_PORT}, or the port in SERVICE_PORT`),
  );
}

/** A client for the server that the flags name. The key comes from the environment, which other users cannot read. */
export function connect(command: Command, { showProgress = true } = {}): EmotionClient {
  const { SERVICE_API_KEY, SERVICE_ASYNCH_URL } = process.env;
  if (!SERVICE_API_KEY) {
    throw new UserError(
      'No API key: set SERVICE_API_KEY. Run `undertone keys create` on the server to create a key.',
    );
  }
  if (SERVICE_ASYNCH_URL && command.getOptionValueSource('url') === 'cli') {
    process.stderr.write(`undertone: SERVICE_ASYNCH_URL overrides --url: using ${SERVICE_ASYNCH_URL}.\n`);
  }
  const client = new EmotionClient({ baseUrl: serverUrl(command), showProgress });
  client.validateConfig();
  return client;
}

/** The address of the server that the flags name. */
export function serverUrl(command: Command): string {
  return command.opts<{ url?: string }>().url || `http://127.0.0.1:${localPort()}`;
}

/** A shell that has SERVICE_PORT set for its server uses the same port for the client. */
function localPort(): number {
  const { SERVICE_PORT } = process.env;
  return readSettings({ SERVICE_PORT }).port || DEFAULT_PORT;
}

/** Runs work that Ctrl-C cancels; a second Ctrl-C kills the process. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const aborter = new AbortController();
  const onInterrupt = () => aborter.abort(new UserError('Stopped.'));
  process.once('SIGINT', onInterrupt);
  try {
    return await work(aborter.signal);
  } finally {
    process.off('SIGINT', onInterrupt);
  }
}

/** Waits for a result. After Ctrl-C it says how to get it later. */
export async function waitForResult(
  client: EmotionClient,
  requestId: string,
  signal: AbortSignal,
  onProgress?: ProgressListener,
): Promise<AsynchResult> {
  try {
    return await client.asynch.wait(requestId, { onProgress, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new UserError(`Stopped waiting. The request continues: \`undertone result ${requestId} --wait\`.`);
  }
}

/** Overwrites the status line, if there is a terminal. */
export function writeStatus(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}
