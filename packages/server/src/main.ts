import type { Logger } from 'pino';
import { type RunningServer, startServer } from './compose.ts';
import { banner, keepFirstKey } from './first-start.ts';
import { createLogger } from './logger.ts';
import { applyRuntimeFlags } from './runtime-flags.ts';
import { readSettings, type Settings, SettingsError, unknownVariables } from './settings.ts';

/** A stop that takes longer than this is not going to end by itself. */
const STOP_WITHIN_MS = 14_000;
/** A signal to a process group comes twice where `make` started the server, which passes it on: that is one signal. */
const SAME_SIGNAL_MS = 300;

/** Runs the server until a signal: the first one stops it in order, the second at once. */
export async function main(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const settings = readSettings(env);
  const logger = createLogger(settings.logLevel);
  for (const warning of unknownVariables(env)) logger.warn(warning);
  const server = await startServer(settings, logger);
  let stoppedAt: number | undefined;
  const onSignal = () => {
    if (stoppedAt !== undefined) {
      if (performance.now() - stoppedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    stoppedAt = performance.now();
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
  if (settings.role !== 'worker') await welcome(server, settings, logger);
}

/** A key is shown on a terminal only: logs are kept, and read by others. */
async function welcome(
  { firstKey, url }: RunningServer,
  { dataDir }: Settings,
  logger: Logger,
): Promise<void> {
  if (process.stdout.isTTY) process.stdout.write(banner(url, firstKey ?? undefined));
  else if (firstKey !== null) {
    const file = await keepFirstKey(dataDir, firstKey, url);
    logger.info({ file }, 'made the first API key: it is in this file, with a link to the page');
  }
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
