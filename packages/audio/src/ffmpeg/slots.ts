import { availableParallelism } from 'node:os';
import { AudioError } from '../errors.ts';

export type Kind = 'clip' | 'recording';

const MOST_WAITING_CLIPS = 64;

/**
 * ffmpeg is a process of some 50 MB for each recording, so only a few run at a time.
 *
 * Long recordings take at most half of the slots, so that short clips always find one soon; where both wait, clips go
 * first. Too many waiting clips are refused. Recordings wait as long as they must: their number is limited elsewhere.
 */
export class Slots {
  readonly #total: number;
  readonly #running: Record<Kind, number> = { clip: 0, recording: 0 };
  readonly #waiting: Record<Kind, Array<() => void>> = { clip: [], recording: [] };

  constructor(total: number = Math.max(4, 2 * availableParallelism())) {
    this.#total = total;
  }

  /** Waits for a slot; call what it returns to free it. */
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
    if (kind === 'clip' && waiting.length >= MOST_WAITING_CLIPS) {
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
