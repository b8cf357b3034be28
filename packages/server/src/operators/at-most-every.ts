/** All callers share one run and its outcome for `everyMs`: anybody may ask, and the answer costs something. */
export function atMostEvery<T>(everyMs: number, run: () => Promise<T>): () => Promise<T> {
  let latest: { at: number; outcome: Promise<T> } | undefined;
  return () => {
    const now = performance.now();
    if (latest === undefined || now - latest.at >= everyMs) latest = { at: now, outcome: run() };
    return latest.outcome;
  };
}
