// What a result says, in words and shares. The headline and the legend use the same shares, so they always agree.
import {
  type Emotion,
  hasSpeech,
  labelOf,
  MODELS,
  type ModelId,
  NO_SPEECH,
  type TimedStep,
  UNSURE,
} from '@undertone/contract';

export type Label = ReturnType<typeof labelOf>;

/** From this share of the time on, a result is "mostly" one label. */
const MOSTLY = 0.5;
/** Labels named by a headline if none has a majority. */
const NAMED = 3;

/** The share of time of each label, the largest first. Unsure and silent steps are labels of their own. */
export function sharesOf(steps: readonly TimedStep[]): [Label, number][] {
  const total = secondsOf(steps) || 1;
  return [...Map.groupBy(steps, labelOf)]
    .map(([label, own]): [Label, number] => [label, secondsOf(own) / total])
    .toSorted(([, a], [, b]) => b - a);
}

/** The result of one channel in one line. */
export function headline(steps: readonly TimedStep[]): string {
  const [first] = steps;
  if (first === undefined) return 'no result';
  if (steps.length === 1)
    return hasSpeech(first) ? `${describe(first)}, ${percent(first.confidence)}` : NO_SPEECH;
  const shares = sharesOf(steps);
  const [[label, share] = [NO_SPEECH, 1]] = shares;
  if (share > 0.995) return `${label} all the time`;
  if (share >= MOSTLY) return `mostly ${label}, ${whole(share)} of the time`;
  const named = shares.slice(0, NAMED).map(([name, part]) => `${name} ${whole(part)}`);
  return `mixed: ${named.join(', ')}`;
}

/** The result of all channels in one line, for announcements and titles. */
export function summary(steps: readonly TimedStep[], channelName: (channel: number) => string): string {
  const channels = byChannel(steps);
  if (channels.length < 2) return headline(steps);
  return channels.map(([channel, own]) => `${channelName(channel)}: ${headline(own)}`).join('; ');
}

export function byChannel(steps: readonly TimedStep[]): [number, TimedStep[]][] {
  return [...Map.groupBy(steps, ({ channel = 0 }) => channel)].toSorted(([a], [b]) => a - b);
}

/** The emotion with the largest share of sure speech; undefined if there is none. */
export function mainLabel(steps: readonly TimedStep[]): Label | undefined {
  const shares = sharesOf(steps);
  return (shares.find(([label]) => label !== UNSURE && label !== NO_SPEECH) ?? shares[0])?.[0];
}

/** The mean probability of each emotion over the steps with speech, weighted by their length. */
export function averagesOf(steps: readonly TimedStep[], model: ModelId): Partial<Record<Emotion, number>> {
  const heard = steps.filter((step) => hasSpeech(step) && step.all_predictions !== undefined);
  const total = heard.reduce((sum, step) => sum + lengthOf(step), 0);
  if (total === 0) return {};
  return Object.fromEntries(
    MODELS[model].map((emotion) => [
      emotion,
      heard.reduce((sum, step) => sum + (step.all_predictions?.[emotion] ?? 0) * lengthOf(step), 0) / total,
    ]),
  );
}

/** The mean confidence of the steps with speech, weighted by their length; undefined if nobody speaks. */
export function meanConfidence(steps: readonly TimedStep[]): number | undefined {
  const heard = steps.filter(hasSpeech);
  const total = heard.reduce((sum, step) => sum + lengthOf(step), 0);
  return total === 0
    ? undefined
    : heard.reduce((sum, step) => sum + step.confidence * lengthOf(step), 0) / total;
}

/** A step as text, for tables and screen readers. */
export function describe(step: TimedStep): string {
  const label = labelOf(step);
  return label === UNSURE ? `${UNSURE}, perhaps ${step.emotion}` : label;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

export function whole(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** Emotions by probability, the highest first. */
export function ranked(all: Partial<Record<Emotion, number>>): [Emotion, number][] {
  return (Object.entries(all) as [Emotion, number][]).toSorted(([, a], [, b]) => b - a);
}

function secondsOf(steps: readonly TimedStep[]): number {
  return steps.reduce((sum, step) => sum + lengthOf(step), 0);
}

/** A recording that the browser cannot decode has no known length: its single step counts as one second. */
function lengthOf({ start, end }: TimedStep): number {
  return end - start || 1;
}
