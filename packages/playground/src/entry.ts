import type { Emotion, ModelId } from '@undertone/contract';
import type { LiveSession } from './live.ts';
import type { Result } from './result.ts';

/** A file, and what the browser knows about it. */
export interface Recording {
  readonly file: File;
  /** For the player. */
  readonly url: string;
  /** Undefined if the browser cannot decode the file. */
  readonly seconds?: number;
  /** The waveform of each channel as peaks of short intervals; empty if it was not decoded. */
  readonly peaks: readonly Float32Array[];
}

/** What is happening to a recording. */
export type EntryState =
  | 'waiting'
  | 'reading'
  | 'sending'
  | 'uploading'
  | 'queued'
  | 'processing'
  | 'fetching'
  | 'live'
  | 'done'
  | 'failed';

/** A recording on the page. Every change makes a new object, so that unchanged rows need not be drawn again. */
export interface Entry {
  readonly id: number;
  readonly name: string;
  /** The path inside a dropped folder, which labels refer to. */
  readonly path: string;
  readonly model: ModelId;
  readonly state: EntryState;
  /** How much of the state is done, 0 to 1, if known. */
  readonly progress?: number;
  readonly file?: File;
  readonly recording?: Recording;
  readonly session?: LiveSession;
  readonly result?: Result;
  readonly error?: unknown;
  /** The request on the server, as soon as there is one. */
  readonly requestId?: string;
  /** The true emotion, from the name of a folder or a CSV. */
  readonly truth?: Emotion;
}

export function isWorking({ state }: Entry): boolean {
  return state !== 'done' && state !== 'failed';
}

const STATES: Record<EntryState, string> = {
  waiting: 'Waiting',
  reading: 'Reading the file',
  sending: 'Sending',
  uploading: 'Uploading',
  queued: 'Waiting in the queue of the server',
  processing: 'Analysing',
  fetching: 'Fetching the result',
  live: 'Recording',
  done: 'Done',
  failed: 'Failed',
};

/** What is happening, in words: `Uploading 40 %`, `Analysing 3 of 12 min`. */
export function stateText({ state, progress, recording }: Entry): string {
  const text = STATES[state];
  if (progress === undefined || (state !== 'uploading' && state !== 'processing')) return text;
  const minutes = (recording?.seconds ?? 0) / 60;
  if (state === 'processing' && minutes >= 2) {
    return `${text} ${Math.floor(progress * minutes)} of ${Math.round(minutes)} min`;
  }
  return `${text} ${Math.floor(progress * 100)} %`;
}
