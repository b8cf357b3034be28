/** How long one round of the event loop may go on accepting connections, beginning requests and taking in bodies. */
const LONGEST_STRETCH_MS = 5;
/** Whoever is let on may have work for a later moment of the round, which the clock does not show yet. */
const MOST_LET_ON = 12;

const waiting: (() => void)[] = [];
let stretchBegan: number | null = null;
let letOn = 0;

/**
 * Hundreds of connections can become readable in one round of the event loop, each with a request to begin or half
 * a megabyte of body to take in. They take turns, a few milliseconds' worth in a round, so that those already under
 * way go on. True when there is time left in this round and nobody waited longer.
 */
export function mayGoOn(): boolean {
  return waiting.length === 0 && isRoomLeft();
}

/** For those who may not: in a later round, first come, first served. */
export function goOnLater(work: () => void): void {
  waiting.push(work);
}

function isRoomLeft(): boolean {
  if (stretchBegan === null) {
    stretchBegan = performance.now();
    letOn = 0;
    setImmediate(nextRound);
  }
  return performance.now() - stretchBegan < LONGEST_STRETCH_MS && letOn++ < MOST_LET_ON;
}

function nextRound(): void {
  stretchBegan = null;
  while (waiting.length > 0 && isRoomLeft()) waiting.shift()?.();
}
