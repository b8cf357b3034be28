import type { ErrorCode } from '@undertone/contract';

/** Why a request failed, as its owner sees it. */
export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly figures: Readonly<Record<string, unknown>>;
}

/** `plain`: the answer of `GET /prediction`. `detailed`: the answer with `details=true`. */
export type ResultForm = 'plain' | 'detailed';

/** A piece of a large result. All pieces of a form, joined, are its JSON text. */
export interface ResultChunk {
  readonly form: ResultForm;
  /** From 0. */
  readonly number: number;
  readonly text: string;
}

/** `result` is the JSON text of both answers. That of a large one is in chunks. */
export type Outcome =
  | { readonly result: string }
  | { readonly chunked: true }
  | { readonly failure: Failure };

/** The part of the RequestStore that keeps what workers found out. */
export interface ResultStore {
  /** The worker, before it finishes a large result. False when it no longer holds the request. */
  addResultChunk(id: string, lease: string, chunk: ResultChunk): Promise<boolean>;
  /** The worker: processing -> completed or failed, with a webhook if one is wanted. False when it no longer holds it. */
  finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean>;
  /** Prediction: what `finish` was given. Null when there is none, or none any more. */
  outcome(id: string): Promise<Outcome | null>;
  /** Prediction, chunk by chunk. Null when there is none, or none any more. */
  resultChunk(id: string, form: ResultForm, number: number): Promise<string | null>;
}
