// Neighbouring steps joined: the rows of a result, and the places to jump to.
import { type Emotion, hasSpeech, labelOf, NO_SPEECH, type TimedStep, UNSURE } from '@undertone/contract';
import type { Label } from './summary.ts';

export interface Segment {
  readonly channel: number;
  readonly start: number;
  readonly end: number;
  readonly label: Label;
  /** The emotion of its first step, which means little if the label is `unsure` or `no speech`. */
  readonly emotion: Emotion;
  /** The mean over its steps, weighted by their length. */
  readonly confidence: number;
}

/** Steps may overlap or leave gaps by rounding. */
const GAP_SECONDS = 0.1;

/** Joins neighbours of a channel with the same label, ordered by start, then channel. */
export function segmentsOf(steps: readonly TimedStep[]): Segment[] {
  const latest = new Map<number, Segment>();
  const segments: Segment[] = [];
  for (const step of steps) {
    const { channel = 0, start, end, emotion, confidence } = step;
    const label = labelOf(step);
    const last = latest.get(channel);
    const joins = last?.label === label && start - last.end < GAP_SECONDS;
    const next = joins ? extended(last, step) : { channel, start, end, label, emotion, confidence };
    if (joins) segments[segments.lastIndexOf(last)] = next;
    else segments.push(next);
    latest.set(channel, next);
  }
  return segments;
}

function extended(segment: Segment, { start, end, confidence }: TimedStep): Segment {
  const before = segment.end - segment.start;
  const more = end - start;
  const mean = (segment.confidence * before + confidence * more) / (before + more || 1);
  return { ...segment, end, confidence: mean };
}

/** Only the segments with these labels; all of them if none is chosen. */
export function filtered(segments: readonly Segment[], labels: ReadonlySet<Label>): readonly Segment[] {
  return labels.size === 0 ? segments : segments.filter(({ label }) => labels.has(label));
}

/** Stretches of an emotion with at least this confidence in every step. */
export function hitsOf(steps: readonly TimedStep[], emotion: Emotion, threshold: number): Segment[] {
  const hits = steps.filter(
    (step) => hasSpeech(step) && step.emotion === emotion && step.confidence >= threshold,
  );
  return segmentsOf(hits);
}

/** The next stretch after a time, or before it; starts over at the end. */
export function nextHit(
  hits: readonly Segment[],
  after: number,
  direction: 'next' | 'previous' = 'next',
): Segment | undefined {
  const starts = hits.toSorted((a, b) => a.start - b.start);
  // The player rounds positions.
  if (direction === 'next') return starts.find(({ start }) => start > after + GAP_SECONDS) ?? starts[0];
  return starts.findLast(({ start }) => start < after - GAP_SECONDS) ?? starts.at(-1);
}

export function isEmotion(label: Label): label is Emotion {
  return label !== UNSURE && label !== NO_SPEECH;
}
