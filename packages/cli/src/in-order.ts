/** Works on up to `limit` items at once and hands the results over in the order of the items. */
export async function* inOrder<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const inFlight: Promise<Result>[] = [];
  for (const item of items) {
    if (inFlight.length === limit) yield await (inFlight.shift() as Promise<Result>);
    inFlight.push(work(item));
  }
  while (inFlight.length > 0) yield await (inFlight.shift() as Promise<Result>);
}
