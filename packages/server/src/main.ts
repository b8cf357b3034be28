import { hostname } from 'node:os';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import packageJson from '../package.json' with { type: 'json' };
import { banner, writeFirstKey } from './first-start.ts';
import { type LogLevel, readSettings, type Settings, unknownVariables } from './settings.ts';
import { type RunningServer, startServer } from './start-server.ts';

/** For requeueing recordings and closing stores, beside the time that the settings give to requests. */
const STOP_TIMEOUT_MS = 9_000;
/** `make` passes a signal on that the process group already got: two signals this close together are one. */
const SAME_SIGNAL_MS = 300;

/** Runs the server until a signal. The first one stops it in order, the second one at once. */
export async function main(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const settings = readSettings(env);
  const logger = createLogger(settings.logLevel, undefined, settings.role);
  for (const warning of unknownVariables(env)) logger.warn(warning);
  const server = await startServer(settings, logger);
  let stoppedAt: number | undefined;
  const onSignal = () => {
    if (stoppedAt !== undefined) {
      if (performance.now() - stoppedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    stoppedAt = performance.now();
    const requestsMs = (settings.drainSeconds + settings.finishSeconds) * 1000;
    setTimeout(() => process.exit(1), requestsMs + STOP_TIMEOUT_MS).unref();
    server.stop().then(
      () => process.exit(0),
      (error) => {
        logger.error({ err: error }, 'shutdown failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  if (settings.role !== 'worker') await welcome(server, settings, logger);
}

/** JSON lines, or readable ones on a terminal. Nothing a caller sent is logged: no body, header or query. */
export function createLogger(
  level: LogLevel,
  destination?: DestinationStream,
  role: Settings['role'] = 'all',
): Logger {
  const base = { service: 'undertone', role, version: packageJson.version, host: hostname() };
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime };
  if (destination) return pino(options, destination);
  if (process.stdout.isTTY) {
    return pino(
      options,
      pretty({ colorize: true, translateTime: 'SYS:HH:MM:ss', ignore: Object.keys(base).join(), sync: true }),
    );
  }
  return pino(options);
}

/** The key is printed on a terminal only: logs are kept, and other people read them. */
async function welcome(server: RunningServer, { dataDir }: Settings, logger: Logger): Promise<void> {
  const { firstKey, url } = server;
  if (process.stdout.isTTY) process.stdout.write(banner(url, firstKey ?? undefined));
  else if (firstKey !== null) {
    try {
      const file = await writeFirstKey(dataDir, firstKey, url);
      logger.info({ file }, 'created the first API key; this file has the key and a link to the web page');
    } catch (err) {
      // With PostgreSQL and S3 a server needs no folder that it can write to.
      logger.warn({ err }, 'there is no API key yet; create one with `undertone keys create NAME`');
      await server.discardFirstKey();
    }
  }
}
