import type { Emotion, TimedStep } from '@undertone/contract';

/** A step of 5 seconds. */
export function step(
  at: number,
  emotion: Emotion,
  confidence = 0.9,
  more: Partial<TimedStep> = {},
): TimedStep {
  return { start: at, end: at + 5, emotion, confidence, speech_seconds: 4, ...more };
}
