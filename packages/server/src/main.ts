import { setFlagsFromString } from 'node:v8';
import { createLogger } from './logger.ts';
import { readSettings, SettingsError } from './settings.ts';
import { startServer } from './start.ts';

/** A stop that takes longer than this is not going to end by itself. */
const STOP_WITHIN_MS = 30_000;

/** Runs the server until a signal: the first one stops it in peace, the second at once. */
export async function main(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const settings = readSettings(env);
  // Audio lies outside the JavaScript heap, but counts towards the growth after which the whole heap is collected.
  // Ours is small, so that would be every fourth clip; with room to grow it is every twentieth.
  setFlagsFromString('--heap-growing-percent=400');
  const logger = createLogger(settings.logLevel);
  const server = await startServer(settings, logger);
  if (server.firstKey) {
    process.stdout.write(
      `\nThis is your API key. It is shown this once:\n\n    ${server.firstKey.key}\n\n` +
        `Only its SHA-256 is kept, in ${server.firstKey.keptIn}.\n\n`,
    );
  }
  let stopping = false;
  const onSignal = () => {
    if (stopping) process.exit(1);
    stopping = true;
    setTimeout(() => process.exit(1), STOP_WITHIN_MS + settings.drainSeconds * 1000).unref();
    server.stop().then(
      () => process.exit(0),
      (error) => {
        logger.error({ err: error }, 'the stop failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(
      `${error instanceof SettingsError ? error.message : String((error as Error).stack)}\n`,
    );
    process.exit(1);
  });
}
