import type { Socket } from 'node:net';

/** How many connections are listened to again in one round of the event loop. */
const A_FEW = 12;

/**
 * The connections that may bring a new request at any moment. Hundreds of them can do so in one round of the event
 * loop, each with a piece of its body, and reading all of that holds the loop before any handler can say no. So when a
 * round has had enough, the others are not listened to until a later one, a few in each, first held, first heard.
 */
export class QuietConnections {
  readonly #heard = new Set<Socket>();
  readonly #held: Socket[] = [];
  /** Listened to again in this round: they have waited, and are not held a second time before they could speak. */
  #invited = new Set<Socket>();

  add(socket: Socket): void {
    if (!socket.destroyed) this.#heard.add(socket);
  }

  /** It has begun a request, or is gone. */
  delete(socket: Socket): void {
    this.#heard.delete(socket);
    this.#invited.delete(socket);
  }

  /** What has arrived on these connections, or does before their turn, stays with the system. */
  hold(): void {
    if (this.#heard.size === 0) return;
    if (this.#held.length === 0 && this.#invited.size === 0) this.#inviteSoon();
    for (const socket of this.#heard) {
      socket.pause();
      this.#held.push(socket);
    }
    this.#heard.clear();
  }

  #inviteSoon(): void {
    setImmediate(() => {
      for (const socket of this.#invited) this.#heard.add(socket);
      this.#invited = new Set(this.#held.splice(0, A_FEW).filter((socket) => !socket.destroyed));
      for (const socket of this.#invited) socket.resume();
      if (this.#invited.size > 0 || this.#held.length > 0) this.#inviteSoon();
    });
  }
}
