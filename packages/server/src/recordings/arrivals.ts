import { ProblemError } from '../problems.ts';
import type { AsynchRequest, StorageUsage } from '../stores/contracts.ts';

/** A part that is arriving now. */
export interface Arrival {
  readonly request: AsynchRequest;
  readonly number: number;
  readonly replaced: AbortController;
  /** Announced, or received so far if no length was announced. */
  bytes: number;
}

/** Bytes of an owner, or of a request. */
interface Tally {
  arriving: number;
  /** Recorded since the first of the parts that are arriving now began. */
  recorded: number;
  parts: number;
}

/**
 * The parts that are arriving in this process. Their bytes are on the disk before the store has recorded them, so they count
 * towards the limits from the start, once for each part.
 */
export class Arrivals {
  readonly #parts = new Map<string, Arrival>();
  readonly #owners = new Map<string, Tally>();
  readonly #requests = new Map<string, Tally>();

  /** If a part is sent again while its first attempt hangs, the newer one wins, and only it is counted. */
  begin(request: AsynchRequest, number: number, bytes: number): Arrival {
    const earlier = this.#parts.get(nameOf(request, number));
    earlier?.replaced.abort(new ProblemError('conflict', 'This part was sent again; the newer one is kept.'));
    if (earlier) this.end(earlier);
    const arrival: Arrival = { request, number, replaced: new AbortController(), bytes };
    this.#parts.set(nameOf(request, number), arrival);
    for (const [tallies, name] of this.#talliesOf(arrival)) {
      const tally = tallies.get(name) ?? { arriving: 0, recorded: 0, parts: 0 };
      tally.arriving += bytes;
      tally.parts++;
      tallies.set(name, tally);
    }
    return arrival;
  }

  /** More arrived than was known of. */
  grow(arrival: Arrival, bytes: number): void {
    if (!this.#isCounted(arrival)) return;
    arrival.bytes += bytes;
    for (const [tallies, name] of this.#talliesOf(arrival)) {
      const tally = tallies.get(name);
      if (tally) tally.arriving += bytes;
    }
  }

  /** What has been recorded until now, to tell later what is new: see `others`. */
  recorded({ request }: Arrival): StorageUsage {
    return {
      requestBytes: this.#requests.get(request.id)?.recorded ?? 0,
      ownerBytes: this.#owners.get(request.owner)?.recorded ?? 0,
    };
  }

  /** Bytes beside this part that a usage read at the time of `recorded` does not contain. */
  others({ request, bytes }: Arrival, recorded: StorageUsage): StorageUsage {
    const beside = (tally: Tally | undefined, before: number) =>
      tally === undefined ? 0 : tally.arriving - bytes + tally.recorded - before;
    return {
      requestBytes: beside(this.#requests.get(request.id), recorded.requestBytes),
      ownerBytes: beside(this.#owners.get(request.owner), recorded.ownerBytes),
    };
  }

  /** Ends with the part in the store. */
  record(arrival: Arrival): void {
    if (!this.#isCounted(arrival)) return;
    for (const [tallies, name] of this.#talliesOf(arrival)) {
      const tally = tallies.get(name);
      if (tally) tally.recorded += arrival.bytes;
    }
    this.end(arrival);
  }

  end(arrival: Arrival): void {
    if (!this.#isCounted(arrival)) return;
    this.#parts.delete(nameOf(arrival.request, arrival.number));
    for (const [tallies, name] of this.#talliesOf(arrival)) {
      const tally = tallies.get(name);
      if (tally === undefined) continue;
      tally.arriving -= arrival.bytes;
      if (--tally.parts === 0) tallies.delete(name);
    }
  }

  #isCounted(arrival: Arrival): boolean {
    return this.#parts.get(nameOf(arrival.request, arrival.number)) === arrival;
  }

  #talliesOf({ request }: Arrival): [Map<string, Tally>, string][] {
    return [
      [this.#owners, request.owner],
      [this.#requests, request.id],
    ];
  }
}

function nameOf({ id }: AsynchRequest, number: number): string {
  return `${id} ${number}`;
}
