import { AudioError } from '../errors.ts';

export type Kind = 'clip' | 'recording';

const MAX_WAITING_CLIPS = 64;

/**
 * Limits the concurrent ffmpeg processes of short clips, which take some 50 MB each. Too many waiting clips are refused.
 * Long recordings never wait here: the job limit bounds them, and one that lasts hours would keep the slot from all others.
 */
export class Slots {
  readonly #total: number;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(total: number) {
    this.#total = total;
  }

  /** Waits for a slot. Returns the function that frees it. */
  async take(kind: Kind, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (kind === 'recording') return () => undefined;
    if (this.#running < this.#total) this.#running++;
    else await this.#wait(signal);
    return () => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    };
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING_CLIPS) {
      throw new AudioError(
        'overloaded',
        'The server is busy with other compressed recordings. Try again in a moment.',
      );
    }
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal?.reason);
      };
      this.#waiting.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }
}
