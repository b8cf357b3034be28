/** Messages between the main thread and an inference thread. */
import type { AudioErrorCode, PcmBlock, PcmFormat } from '@undertone/audio';
import type { ModelEntry } from './catalog.ts';
import type { Models } from './prediction.ts';

/** `workerData` of a thread. */
export interface ThreadData {
  modelPath: string;
  /** The outputs that the graph must have. */
  models: readonly ModelEntry[];
  /** One Int32, see `Activity`. */
  activity: SharedArrayBuffer;
}

/** Tasks are self-contained and threads keep no state, so any thread can retry a task. */
export type Task =
  /** A short recording, as a WAV file or as raw samples in the format `pcm`: parse, check, decode and classify. */
  | { readonly kind: 'clip'; readonly data: Uint8Array; readonly pcm?: PcmFormat }
  /** A short recording as JSON samples: parse, check, resample and classify. */
  | { readonly kind: 'json'; readonly data: Uint8Array }
  /** Raw samples of a stream: decode and classify. */
  | ({ readonly kind: 'samples' } & PcmBlock)
  /** A block of a long recording: decode. */
  | ({ readonly kind: 'decode' } & PcmBlock)
  /** 16 kHz samples: classify. */
  | { readonly kind: 'window'; readonly data: Float32Array };

export interface Classified {
  readonly models: Models;
  readonly speechSeconds: number;
  readonly seconds: number;
  /** Sample rate of the recording as received. */
  readonly sampleRate: number;
  readonly decodeMs: number;
  readonly inferenceMs: number;
}

export interface Decoded {
  /** 16 kHz samples per channel; a single array if the channels are mixed. */
  readonly channels: Float32Array<ArrayBuffer>[];
}

export type TaskOutput<T extends Task = Task> = T extends { kind: 'decode' } ? Decoded : Classified;

export type ToThread = { kind: 'run'; id: number; task: Task } | { kind: 'stop' };

export type FromThread =
  | { kind: 'ready'; warmUpMs: number }
  | { kind: 'unusable'; message: string }
  | { kind: 'done'; id: number; output: TaskOutput }
  /** The recording cannot be used. */
  | { kind: 'refused'; id: number; code: AudioErrorCode; message: string; figures: Record<string, number> }
  | { kind: 'failed'; id: number; message: string };

/**
 * The ONNX runtime aborts the whole process if a thread is terminated inside it. So the main thread must be able to
 * check and wait without its event loop: `activity[0]` is Busy from the start of a task until the runtime has returned.
 */
export const Activity = { Idle: 0, Busy: 1 } as const;
