import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import type { LogLevel } from './settings.ts';

/** JSON lines, or readable ones on a terminal. Nothing is logged that a caller sent: no body, header or query. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (destination) return pino(options, destination);
  if (process.stdout.isTTY) {
    return pino(options, pretty({ colorize: true, translateTime: 'SYS:HH:MM:ss', sync: true }));
  }
  return pino(options);
}
