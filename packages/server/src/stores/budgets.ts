// How long a call to a store may take. Only this file decides it: for both databases, the SQLite thread and S3.

/** `answer`: a caller waits for it. `long`: it moves much data, one batch or one chunk at a time. */
export type CallKind = 'answer' | 'long';

/** What a caller waits for is answered within a second, whatever the disk or the database does. */
export const ANSWER_MS = 950;
export const LONG_MS = 30_000;

/** Every other call is an `answer`. */
const LONG_CALLS: Readonly<Record<string, readonly string[]>> = {
  requests: [
    ...['finish', 'outcome', 'addResultChunk', 'resultChunk'],
    ...['expire', 'blobsToErase', 'noteErased', 'arrivingUploads', 'noteArrived'],
  ],
  keys: ['revoke'],
};

export interface Budgets {
  /** Longer in tests that are not about it. */
  readonly answerMs?: number | undefined;
  /** Shorter in tests. */
  readonly longMs?: number | undefined;
}

export function kindOf(store: string, method: string): CallKind {
  return LONG_CALLS[store]?.includes(method) ? 'long' : 'answer';
}

export function budgetOf(kind: CallKind, { answerMs = ANSWER_MS, longMs = LONG_MS }: Budgets): number {
  return kind === 'answer' ? answerMs : Math.max(answerMs, longMs);
}
