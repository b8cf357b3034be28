import type { Socket } from 'node:net';
import type { Hold } from '../held-bytes.ts';

/** Every connection has this much in buffers of its own; only more than that counts. */
const FREE_BYTES = 64 * 1024;

/** What a stream holds in memory beside its window: a message that is still arriving, and complete ones that wait. */
export class UnreadBytes {
  readonly #tcp: Socket;
  readonly #hold: Hold;
  /** Bytes of the connection when each waiting message was complete. */
  readonly #complete: number[] = [];
  #consumed: number;

  /** `onFull`: more arrived than fits into the memory for streams. */
  constructor(tcp: Socket, hold: Hold, onFull: () => void) {
    this.#tcp = tcp;
    this.#hold = hold;
    this.#consumed = tcp.bytesRead;
    tcp.on('data', () => {
      if (!this.#count()) onFull();
    });
    tcp.once('close', () => hold.release());
  }

  messageComplete(): void {
    this.#complete.push(this.#tcp.bytesRead);
  }

  /** The oldest complete message. */
  messageConsumed(): void {
    this.#consumed = this.#complete.shift() ?? this.#tcp.bytesRead;
    this.#count();
  }

  #count(): boolean {
    if (this.#tcp.destroyed) return true;
    return this.#hold.resize(Math.max(0, this.#tcp.bytesRead - this.#consumed - FREE_BYTES));
  }
}
