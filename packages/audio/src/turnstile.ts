/**
 * Decoding happens on the event loop, where it costs less than a trip to another thread. This keeps
 * it from holding the loop: all streams together work for a few milliseconds, then the loop goes
 * round, and whoever is still waiting takes turns.
 */
const LONGEST_STRETCH_MS = 5;

const waiting: Array<() => void> = [];
let stretchBegan: number | null = null;

/** To be called before each block of work (a millisecond at most); await what it returns. */
export function takeTurn(): Promise<void> | undefined {
  if (stretchBegan === null) {
    stretchBegan = performance.now();
    setImmediate(loopWentRound);
  }
  const timeLeft = performance.now() - stretchBegan < LONGEST_STRETCH_MS;
  if (timeLeft && waiting.length === 0) return undefined;
  const turn = new Promise<void>((resolve) => waiting.push(resolve));
  if (timeLeft) waiting.shift()?.();
  return turn;
}

function loopWentRound(): void {
  const next = waiting.shift();
  if (next === undefined) {
    stretchBegan = null;
    return;
  }
  stretchBegan = performance.now();
  setImmediate(loopWentRound);
  next();
}
