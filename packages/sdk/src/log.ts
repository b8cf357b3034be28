import type { Platform } from './platform/platform.ts';
import type { LogLevel } from './types.ts';

export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export const DEFAULT_LOG_LEVEL: LogLevel = 'warn';

/** Says what happens, from a level upwards. Keys, file names, signatures and audio are never handed to it. */
export class Log {
  readonly #platform: Platform;
  readonly #from: number;

  constructor(platform: Platform, level: LogLevel) {
    this.#platform = platform;
    this.#from = LOG_LEVELS.indexOf(level);
  }

  debug(text: string): void {
    this.#say('debug', text);
  }

  info(text: string): void {
    this.#say('info', text);
  }

  warn(text: string): void {
    this.#say('warn', text);
  }

  error(text: string): void {
    this.#say('error', text);
  }

  #say(level: LogLevel, text: string): void {
    if (LOG_LEVELS.indexOf(level) >= this.#from) this.#platform.log(level, `undertone ${level}: ${text}`);
  }
}
