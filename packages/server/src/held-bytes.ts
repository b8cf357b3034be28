/** What one caller holds. */
export interface Hold {
  /** Changes it to this many bytes. False, and no change, if they do not fit; fewer always do. */
  resize(bytes: number): boolean;
  release(): void;
}

/**
 * Bytes that this process holds in memory for callers, bounded in total and for each owner: an owner may hold as many as are
 * free, so any number of owners leave room for one more.
 */
export class HeldBytes {
  readonly #max: number;
  readonly #owners = new Map<string, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#max = maxBytes;
  }

  hold(owner: string): Hold {
    let held = 0;
    const resize = (bytes: number): boolean => {
      const more = bytes - held;
      const own = this.#owners.get(owner) ?? 0;
      if (more > 0 && own + more > this.#max - this.#total) return false;
      held = bytes;
      this.#total += more;
      if (own + more > 0) this.#owners.set(owner, own + more);
      else this.#owners.delete(owner);
      return true;
    };
    return { resize, release: () => void resize(0) };
  }

  /** Metrics. */
  byOwner(): ReadonlyMap<string, number> {
    return this.#owners;
  }
}
