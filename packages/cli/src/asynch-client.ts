import { DEFAULT_ASYNCH_URL } from '@undertone/contract';
import { EmotionClient } from '@undertone/sdk';
import { Option } from 'commander';
import { Failure } from './failure.ts';

/** Milliseconds between two questions for a result: a person is waiting. */
export const POLL_MS = 1000;

export interface AsynchFlags {
  readonly asynchUrl: string;
}

export function asynchUrlFlag(): Option {
  return new Option('--asynch-url <url>', 'Base address of the asynch interface')
    .env('SERVICE_ASYNCH_URL')
    .default(DEFAULT_ASYNCH_URL, DEFAULT_ASYNCH_URL);
}

/** A client of the server that is asked for; its key comes from the environment, out of sight of others. */
export function asynchClient({ asynchUrl }: AsynchFlags): EmotionClient {
  const { SERVICE_API_KEY } = process.env;
  if (!SERVICE_API_KEY) {
    throw new Failure(
      'There is no API key: set SERVICE_API_KEY. `undertone keys create` makes one on the server.',
    );
  }
  const client = new EmotionClient({ asynchUrl });
  client.validateConfig();
  return client;
}

/** Runs something that Ctrl-C stops in good order; a second Ctrl-C ends the process at once. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const aborter = new AbortController();
  const onInterrupt = () => aborter.abort(new Failure('Stopped.'));
  process.once('SIGINT', onInterrupt);
  try {
    return await work(aborter.signal);
  } finally {
    process.off('SIGINT', onInterrupt);
  }
}
