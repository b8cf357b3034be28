/** What the main thread and an inference thread say to each other. */
import type { AudioErrorCode, PcmBlock } from '@undertone/audio';
import type { ModelEntry } from './catalog.ts';
import type { Models } from './prediction.ts';

/** What a thread is given when it is made. */
export interface ThreadData {
  modelPath: string;
  /** What the catalogue says the graph puts out. */
  models: readonly ModelEntry[];
  /** One Int32: is the thread at work? See `Activity`. */
  activity: SharedArrayBuffer;
}

/** Everything one piece of work needs: a thread keeps nothing between two tasks, so any other can try again. */
export type Task =
  /** A short recording: decode and classify. */
  | ({ readonly kind: 'clip' } & PcmBlock)
  /** Prepared samples as JSON: parse, check, resample and classify. */
  | { readonly kind: 'json'; readonly data: Uint8Array }
  /** A part of a long recording -> 16 kHz samples. */
  | ({ readonly kind: 'decode' } & PcmBlock)
  /** 16 kHz samples: classify. */
  | { readonly kind: 'window'; readonly data: Float32Array };

export interface Classified {
  readonly models: Models;
  readonly speechSeconds: number;
  readonly seconds: number;
  readonly decodeMs: number;
  readonly inferenceMs: number;
}

export interface Decoded {
  /** One list of 16 kHz samples for each channel that is heard; only one where all are mixed. */
  readonly channels: Float32Array<ArrayBuffer>[];
}

export type Outcome<T extends Task = Task> = T extends { kind: 'decode' } ? Decoded : Classified;

export type ToThread = { kind: 'run'; id: number; task: Task } | { kind: 'stop' };

export type FromThread =
  | { kind: 'ready'; warmUpMs: number }
  | { kind: 'unusable'; message: string }
  | { kind: 'done'; id: number; outcome: Outcome }
  /** The recording is at fault. */
  | { kind: 'refused'; id: number; code: AudioErrorCode; message: string; figures: Record<string, number> }
  | { kind: 'failed'; id: number; message: string };

/**
 * The runtime aborts the whole process when a thread is terminated while inside it, so the main thread must be able
 * to tell, and to wait, without the event loop: `activity[0]` is Busy from the moment work is handed over until the
 * runtime has returned.
 */
export const Activity = { Idle: 0, Busy: 1 } as const;
