// A timeline as a table, as CSV and as subtitles. Channels count from 0, as in the API.
import { EMOTIONS, type Emotion } from './emotions.ts';
import { hasSpeech, labelOf, NO_SPEECH, UNSURE } from './labels.ts';
import { INTERVAL_SECONDS } from './limits.ts';
import type { AllPredictions, AsynchResult } from './schemas/types.ts';
import { formatTimestamp, parseTimestamp } from './timestamps.ts';

/** One step of a timeline, with its start and end in seconds. */
export interface TimedStep {
  readonly start: number;
  readonly end: number;
  readonly emotion: Emotion;
  readonly confidence: number;
  /** Absent if the channels were mixed. */
  readonly channel?: number | undefined;
  readonly speech_seconds?: number | undefined;
  readonly speech?: boolean | undefined;
  readonly all_predictions?: AllPredictions | undefined;
}

/** The steps of a result. Without details every step is as long as the first one. */
export function timedSteps({ emotions, duration_seconds: end = Infinity }: AsynchResult): TimedStep[] {
  const starts = emotions.map(({ t }) => parseTimestamp(t));
  const interval = starts.find((start) => start > 0) ?? INTERVAL_SECONDS.default;
  return emotions.map((element, i) => {
    const start = element.start ?? starts[i] ?? 0;
    return { ...element, start, end: element.end ?? Math.min(start + interval, end) };
  });
}

/** A header and one row per step. The emotion of a step without speech is `no speech`. */
export function timelineTable(steps: readonly TimedStep[]): (string | number | boolean | undefined)[][] {
  const emotions = EMOTIONS.filter((name) =>
    steps.some((step) => step.all_predictions?.[name] !== undefined),
  );
  const rows = steps.map((step) => [
    formatTimestamp(step.start),
    milliseconds(step.start) / 1000,
    hasSpeech(step) ? step.emotion : NO_SPEECH,
    step.confidence,
    milliseconds(step.end) / 1000,
    step.channel,
    step.speech_seconds,
    step.speech ?? (step.speech_seconds === undefined ? undefined : hasSpeech(step)),
    ...emotions.map((name) => step.all_predictions?.[name]),
  ]);
  const columns = ['t', 'seconds', 'emotion', 'confidence', 'end', 'channel', 'speech_seconds', 'speech'];
  return [[...columns, ...emotions], ...rows];
}

/** The table as CSV. */
export function toCsv(steps: readonly TimedStep[]): string {
  return timelineTable(steps).map(csvLine).join('');
}

/** One line of CSV (RFC 4180), with its line break. */
export function csvLine(values: readonly unknown[]): string {
  const fields = values.map((value) => {
    const text = String(value ?? '');
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${fields.join(',')}\n`;
}

/** The timeline as SRT subtitles, such as `channel 1: angry 93 %`. */
export function toSrt(steps: readonly TimedStep[]): string {
  const cues = steps.map((step, i) => {
    const label = labelOf(step);
    const channel = step.channel === undefined ? '' : `channel ${step.channel}: `;
    const confidence = `${step.emotion} ${Math.round(step.confidence * 100)} %`;
    const text = label === NO_SPEECH ? label : label === UNSURE ? `${confidence} (${label})` : confidence;
    return `${i + 1}\n${srtTime(step.start)} --> ${srtTime(step.end)}\n${channel}${text}\n`;
  });
  return cues.join('\n');
}

/** Hours, minutes, seconds and milliseconds: `01:02:03,004`. */
function srtTime(seconds: number): string {
  const ms = milliseconds(seconds);
  const pad = (value: number, digits = 2) => String(Math.floor(value)).padStart(digits, '0');
  const [hours, minutes] = [ms / 3_600_000, (ms / 60_000) % 60];
  return `${pad(hours)}:${pad(minutes)}:${pad((ms / 1000) % 60)},${pad(ms % 1000, 3)}`;
}

function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000);
}
