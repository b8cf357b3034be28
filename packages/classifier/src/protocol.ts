/** What the main thread and an inference thread say to each other. */

/** What a thread is given when it is made. */
export interface ThreadData {
  modelPath: string;
  /** Output name -> number of columns that the catalogue promises. */
  outputs: Record<string, number>;
  /** One Int32: is the thread inside the runtime? See `Activity`. */
  activity: SharedArrayBuffer;
  /** Where the main thread lays the samples of the next batch: nothing is copied or collected on the way. */
  input: SharedArrayBuffer;
}

export type ToThread = { kind: 'run'; id: number; batch: number; length: number } | { kind: 'stop' };

export type FromThread =
  | { kind: 'ready'; warmUpMs: number; warmUpSamples: number }
  | { kind: 'unusable'; message: string }
  | { kind: 'done'; id: number; inferenceMs: number; outputs: Record<string, Float32Array> }
  | { kind: 'failed'; id: number; message: string };

/**
 * The runtime aborts the whole process when a thread is terminated while inside it, so the main thread must be
 * able to tell, and to wait, without the event loop: `activity[0]` is Busy from the moment work is handed over
 * until the runtime has returned.
 */
export const Activity = { Idle: 0, Busy: 1 } as const;

/** Name of the graph's input, and of the output with the share of the window that is speech. */
export const SAMPLES_INPUT = 'samples';
export const SPEECH_OUTPUT = 'speech';
