import type { Logger, LogLevel } from './types.ts';

/** The same names as on the server: one SERVICE_LOG_LEVEL works for both. */
export const LOG_LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

export const LOGGER_METHODS = ['debug', 'info', 'warn', 'error'] as const;

export const DEFAULT_LOG_LEVEL: LogLevel = 'warn';

export function isLogLevel(value: unknown): boolean {
  return typeof value === 'string' && levelIndex(value) >= 0;
}

/** Keys, file names, signatures and audio are never logged. */
export class Log {
  readonly #logger: Logger;
  readonly #from: number;

  constructor(logger: Logger, level: LogLevel) {
    this.#logger = logger;
    this.#from = levelIndex(level);
  }

  debug(text: string): void {
    this.#write('debug', text);
  }

  info(text: string): void {
    this.#write('info', text);
  }

  warn(text: string): void {
    this.#write('warn', text);
  }

  error(text: string): void {
    this.#write('error', text);
  }

  #write(level: keyof Logger, text: string): void {
    if (levelIndex(level) >= this.#from) this.#logger[level](`undertone ${level}: ${text}`);
  }
}

function levelIndex(level: string): number {
  return LOG_LEVELS.indexOf(level.toLowerCase() as LogLevel);
}
