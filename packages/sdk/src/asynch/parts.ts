import { ASYNCH_LIMITS } from '@undertone/contract';
import { Failure } from '../failure.ts';
import { tooLarge } from '../source/input.ts';

/** A stretch of the recording: the bytes from `start` up to `end`. */
export interface Part {
  /** Counts from 1. */
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Cuts a recording into parts of `partSize` bytes; the last one is what is left. The smallest part the
 * checks let through makes 1,024 parts of the largest file, far below what the service takes.
 */
export function planParts(size: number, partSize: number): Part[] {
  if (size === 0) throw new Failure('The recording is empty.', { code: 'audio_too_short' });
  if (size > ASYNCH_LIMITS.maxFileBytes) throw tooLarge(ASYNCH_LIMITS.maxFileBytes);
  return Array.from({ length: Math.ceil(size / partSize) }, (_, index) => ({
    number: index + 1,
    start: index * partSize,
    end: Math.min((index + 1) * partSize, size),
  }));
}
