/** Works on up to `limit` items at once and hands the results over in the order of the items. */
export async function* inOrder<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const underWay: Promise<Result>[] = [];
  for (const item of items) {
    if (underWay.length === limit) yield await (underWay.shift() as Promise<Result>);
    const result = work(item);
    // Its turn to be awaited may come after it failed.
    result.catch(() => undefined);
    underWay.push(result);
  }
  while (underWay.length > 0) yield await (underWay.shift() as Promise<Result>);
}
