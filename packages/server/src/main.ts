import { startServer } from './compose.ts';
import { createLogger } from './logger.ts';
import { applyRuntimeFlags } from './runtime-flags.ts';
import { readSettings, SettingsError, unknownVariables } from './settings.ts';

/** A stop that takes longer than this is not going to end by itself. */
const STOP_WITHIN_MS = 14_000;

/** Runs the server until a signal: the first one stops it in order, the second at once. */
export async function main(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const settings = readSettings(env);
  const logger = createLogger(settings.logLevel);
  for (const warning of unknownVariables(env)) logger.warn(warning);
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
  applyRuntimeFlags();
  main().catch((error: unknown) => {
    process.stderr.write(
      `${error instanceof SettingsError ? error.message : String((error as Error).stack)}\n`,
    );
    process.exit(1);
  });
}
