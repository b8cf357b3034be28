/** Returns a function that runs work, at most `max` at a time; the rest waits in order. */
export function concurrencyLimit(max: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < max) running++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The slot passes directly to the next in line: if it were free for a moment, a newcomer could take it as well.
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
