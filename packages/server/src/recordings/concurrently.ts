/** Calls to a blob store: enough to hide its latency, few enough to leave room for uploads. */
const CONCURRENT_CALLS = 8;

/** Does the work for all items, some of them concurrently. One that fails does not stop the others. Returns the failures. */
export async function forEachConcurrently<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<unknown[]> {
  const left = items.values();
  const failures: unknown[] = [];
  const runner = async () => {
    for (const item of left) await work(item).catch((error: unknown) => failures.push(error));
  };
  await Promise.all(Array.from({ length: CONCURRENT_CALLS }, runner));
  return failures;
}
