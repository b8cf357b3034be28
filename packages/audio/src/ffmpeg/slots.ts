import { availableParallelism } from 'node:os';
import { AudioError } from '../errors.ts';

export type Kind = 'clip' | 'recording';

const MAX_WAITING_CLIPS = 64;

/**
 * Limits concurrent ffmpeg processes, which take some 50 MB each.
 *
 * Long recordings take at most half of the slots, so that short clips get one soon. Waiting clips go before waiting
 * recordings. Too many waiting clips are refused; recordings wait without a limit, since the job limit bounds them.
 */
export class Slots {
  readonly #total: number;
  readonly #running: Record<Kind, number> = { clip: 0, recording: 0 };
  readonly #waiting: Record<Kind, Array<() => void>> = { clip: [], recording: [] };

  constructor(total: number = Math.max(4, 2 * availableParallelism())) {
    this.#total = total;
  }

  /** Waits for a slot. Returns the function that frees it. */
  async take(kind: Kind, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#hasRoom(kind)) this.#running[kind]++;
    else await this.#wait(kind, signal);
    return () => {
      this.#running[kind]--;
      this.#letIn('clip');
      this.#letIn('recording');
    };
  }

  #hasRoom(kind: Kind): boolean {
    const { clip, recording } = this.#running;
    return clip + recording < this.#total && (kind === 'clip' || recording < this.#total / 2);
  }

  #letIn(kind: Kind): void {
    while (this.#waiting[kind].length > 0 && this.#hasRoom(kind)) {
      this.#running[kind]++;
      this.#waiting[kind].shift()?.();
    }
  }

  #wait(kind: Kind, signal: AbortSignal | undefined): Promise<void> {
    const waiting = this.#waiting[kind];
    if (kind === 'clip' && waiting.length >= MAX_WAITING_CLIPS) {
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
        waiting.splice(waiting.indexOf(enter), 1);
        reject(signal?.reason);
      };
      waiting.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }
}
