import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_PORT } from '@undertone/contract';
import {
  type AsynchResult,
  EmotionClient,
  PredictionTimeoutError,
  type Progress,
  type ProgressListener,
} from '@undertone/sdk';
import { readSettings } from '@undertone/server/settings';
import { type Command, Option } from 'commander';
import { UserError } from './user-error.ts';

export interface ServerFlags {
  readonly url?: string;
  readonly asynchUrl?: string;
}

export const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;

export function addServerFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--url <url>', 'Address of the server')
        .env('SERVICE_URL')
        .default(undefined, `http://127.0.0.1:${DEFAULT_PORT}, or the port in SERVICE_PORT`),
    )
    .addOption(
      new Option('--asynch-url <url>', 'Address of the asynch interface alone')
        .env('SERVICE_ASYNCH_URL')
        .hideHelp(),
    )
    .hook('preAction', () => {
      const { asynchUrl } = command.opts<ServerFlags>();
      if (!asynchUrl || command.getOptionValueSource('url') !== 'cli') return;
      process.stderr.write(`undertone: SERVICE_ASYNCH_URL goes before --url: using ${asynchUrl}.\n`);
    });
}

/** A client of the server that the flags name; its key comes from the environment, where other users cannot see it. */
export function connect(command: Command, { showProgress = true } = {}): EmotionClient {
  const { SERVICE_API_KEY } = process.env;
  if (!SERVICE_API_KEY) {
    throw new UserError(
      'There is no API key: set SERVICE_API_KEY. `undertone keys create` makes one on the server.',
    );
  }
  const { asynchUrl } = command.opts<ServerFlags>();
  const client = new EmotionClient({
    baseUrl: serverUrl(command),
    asynchUrl: asynchUrl || undefined,
    showProgress,
  });
  client.validateConfig();
  return client;
}

/** The address of the server that the flags name. */
export function serverUrl(command: Command): string {
  return command.opts<ServerFlags>().url || `http://127.0.0.1:${localPort()}`;
}

/** A shell that starts the server on another port may be the one that calls it. */
function localPort(): number {
  const { SERVICE_PORT } = process.env;
  return readSettings({ SERVICE_PORT }).port || DEFAULT_PORT;
}

/** Runs something that Ctrl-C stops in good order; a second Ctrl-C ends the process at once. */
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

/** Asks until there is a result. Whoever said --wait may wait for hours, so we ask less and less often. */
export async function waitForResult(
  command: Command,
  requestId: string,
  signal: AbortSignal,
  onProgress: ProgressListener = showStatus,
): Promise<AsynchResult> {
  // One call draws one bar, and these are many calls.
  const client = connect(command, { showProgress: false });
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = longerPause(pauseMs)) {
      try {
        return await client.asynch.emotions(requestId, { maxTries: 1, onProgress, signal });
      } catch (error) {
        if (!(error instanceof PredictionTimeoutError)) throw error;
      }
      await sleep(pauseMs, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new UserError(`Stopped waiting. The request continues: \`undertone result ${requestId} --wait\`.`);
  } finally {
    if (onProgress === showStatus) writeStatus('');
  }
}

/** Most recordings are done in seconds; nobody minds 5 s more after an hour. */
export function longerPause(pauseMs: number): number {
  return Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS);
}

function showStatus({ status, progress }: Progress): void {
  if (status === 'completed') return;
  writeStatus(
    status === 'processing' ? `Classifying ${Math.floor(progress * 100)} %` : 'Waiting in the queue',
  );
}

/** One line that is written over and over, where there is a terminal to do that. */
export function writeStatus(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}
