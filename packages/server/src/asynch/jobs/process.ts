import { setTimeout as sleep } from 'node:timers/promises';
import { AudioError, MODEL_SAMPLE_RATE } from '@undertone/audio';
import { type Classifier, OverloadedError } from '@undertone/classifier';
import { ASYNCH_LIMITS, LENGTH_TOLERANCE_SECONDS, type TimelineElement } from '@undertone/contract';
import type { AsynchRequest } from '../stores/request-store.ts';
import type { Recording } from './recording.ts';
import { makeTimeline } from './timeline.ts';

/** Asynch work has no hurry of its own: it waits this long when the queue is full, and goes on. */
const OVERLOAD_PAUSE_MS = 100;

/**
 * A gigabyte of the thinnest WAV lasts 37 hours. Compressed silence could last years, and its time line would fill
 * the memory.
 */
export const MAX_SECONDS = 48 * 60 * 60;

export interface Processed {
  readonly timeline: TimelineElement[];
  readonly seconds: number;
}

/** A recording in, its time line out. Throws an AudioError when the recording cannot be used. */
export async function processRecording(
  recording: Recording,
  request: AsynchRequest,
  classifier: Classifier,
): Promise<Processed> {
  const audio = await recording.open();
  let samples = 0;

  async function* counted(): AsyncGenerator<Float32Array> {
    for await (const chunk of audio.chunks) {
      samples += chunk.length;
      if (samples > MAX_SECONDS * MODEL_SAMPLE_RATE) throw tooLong();
      yield chunk;
    }
    if (samples < (ASYNCH_LIMITS.minSeconds - LENGTH_TOLERANCE_SECONDS) * MODEL_SAMPLE_RATE) {
      throw tooShort(samples / MODEL_SAMPLE_RATE);
    }
  }

  const timeline = await makeTimeline(counted(), {
    stepSeconds: request.intervalSeconds,
    // One for each thread. More would travel in batches, for which discrete work had to wait, and whose members
    // make a difference in the last bits: a run after a crash could round another way.
    inFlight: classifier.stats().workers,
    classify: async (window, stop) => {
      const { models } = await classifyPatiently(classifier, window, stop);
      return models[request.model] ?? {};
    },
    signal: recording.signal,
  });
  return { timeline, seconds: samples / MODEL_SAMPLE_RATE };
}

async function classifyPatiently(classifier: Classifier, samples: Float32Array, signal: AbortSignal) {
  for (;;) {
    try {
      return await classifier.classify(samples, { priority: 'asynch', signal });
    } catch (error) {
      if (!(error instanceof OverloadedError)) throw error;
    }
    await sleep(OVERLOAD_PAUSE_MS, undefined, { signal });
  }
}

function tooShort(seconds: number): AudioError {
  const min_seconds = ASYNCH_LIMITS.minSeconds;
  const actual_seconds = Number(seconds.toFixed(3));
  return new AudioError(
    'audio_too_short',
    `The recording is ${actual_seconds} s long; at least ${min_seconds} s are needed.`,
    { min_seconds, actual_seconds },
  );
}

function tooLong(): AudioError {
  return new AudioError(
    'audio_too_long',
    `The recording is longer than ${MAX_SECONDS / 3600} hours; cut it into shorter ones.`,
    { max_seconds: MAX_SECONDS },
  );
}
