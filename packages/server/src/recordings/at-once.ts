/** Calls to a blob store: enough that one of them does not have to wait for another, few enough to leave room for uploads. */
const CALLS_AT_ONCE = 8;

/** Does the work for all items, some at the same time. One that fails leaves the others to be done. Returns the failures. */
export async function allAtOnce<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<unknown[]> {
  const left = items.values();
  const failures: unknown[] = [];
  const runner = async () => {
    for (const item of left) await work(item).catch((error: unknown) => failures.push(error));
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, runner));
  return failures;
}
