/** Closes in reverse order what was opened. Node 24 has this as AsyncDisposableStack; Node 22 does not. */
export class CloseStack {
  readonly #closers: (() => unknown)[] = [];

  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Every step runs, even if another fails; the first failure is thrown at the end. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** What `open` has deferred is closed if it fails; otherwise its result owns it. */
export async function closeOnFailure<T>(open: (opened: CloseStack) => Promise<T>): Promise<T> {
  const opened = new CloseStack();
  try {
    return await open(opened);
  } catch (error) {
    // The first error is the one to report.
    await opened.close().catch(() => undefined);
    throw error;
  }
}
