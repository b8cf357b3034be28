import type { Webhook } from '../stores/contracts.ts';

interface TurnsOptions {
  /** Deliveries in flight of all owners. */
  readonly places: number;
  readonly placesPerOwner: number;
  /** Claimed webhooks that may wait for a place, for each owner. */
  readonly waitingPerOwner: number;
}

interface Waiting {
  readonly webhook: Webhook;
  readonly until: number;
}

/**
 * Who is sent next: owners take turns, and each has only a few places, so a receiver that never answers delays the webhooks
 * of its own owner alone. What cannot wait here is left to the end of its lease, when it is due again.
 */
export class OwnerTurns {
  readonly #options: TurnsOptions;
  /** In the order of the turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #inFlight = new Map<string, number>();
  #total = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** `until`: the lease of this webhook then no longer covers a delivery. */
  add(webhook: Webhook, until: number): void {
    const queue = this.#waiting.get(webhook.owner) ?? [];
    if (queue.length >= this.#options.waitingPerOwner) return;
    queue.push({ webhook, until });
    this.#waiting.set(webhook.owner, queue);
  }

  /** Takes a place, which `release` gives back. Undefined if nobody who waits has a free one. */
  take(now: number): Webhook | undefined {
    if (this.#total >= this.#options.places) return undefined;
    for (const [owner, queue] of this.#waiting) {
      while ((queue[0]?.until ?? now) < now) queue.shift();
      const inFlight = this.#inFlight.get(owner) ?? 0;
      if (queue.length > 0 && inFlight >= this.#options.placesPerOwner) continue;
      const next = queue.shift();
      // Moves the owner to the end of the map.
      this.#waiting.delete(owner);
      if (queue.length > 0) this.#waiting.set(owner, queue);
      if (next === undefined) continue;
      this.#inFlight.set(owner, inFlight + 1);
      this.#total++;
      return next.webhook;
    }
    return undefined;
  }

  /** Deliveries in flight. */
  byOwner(): ReadonlyMap<string, number> {
    return this.#inFlight;
  }

  release({ owner }: Webhook): void {
    const left = (this.#inFlight.get(owner) ?? 1) - 1;
    if (left > 0) this.#inFlight.set(owner, left);
    else this.#inFlight.delete(owner);
    this.#total--;
  }
}
