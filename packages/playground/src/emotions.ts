import { ADVISED_MIN_CONFIDENCE, type Emotion, MIN_SPEECH_SECONDS } from '@undertone/contract';

/** Emotions are told apart by a letter, a colour and a pattern, so that no one has to see colours. */
export const LETTERS: Record<Emotion, string> = {
  angry: 'A',
  happy: 'H',
  neutral: 'N',
  sad: 'S',
  nervous: 'V',
  surprised: 'U',
  disgusted: 'D',
};

/** What one stretch of a recording was heard as. */
export interface Step {
  readonly channel: number;
  /** Seconds from the start of the recording. */
  readonly start: number;
  readonly end: number;
  readonly emotion: Emotion;
  readonly confidence: number;
  readonly speechSeconds?: number | undefined;
  readonly all?: Partial<Record<Emotion, number>> | undefined;
}

export type Kind = 'sure' | 'unsure' | 'no speech';

/** Without speech the emotion says nothing; with little confidence, little. */
export function kindOf({ confidence, speechSeconds }: Step): Kind {
  if (speechSeconds !== undefined && speechSeconds < MIN_SPEECH_SECONDS) return 'no speech';
  return confidence < ADVISED_MIN_CONFIDENCE ? 'unsure' : 'sure';
}

/** In words, for tables and screen readers. */
export function describe(step: Step): string {
  const kind = kindOf(step);
  if (kind === 'no speech') return kind;
  return kind === 'unsure' ? `${step.emotion} (unsure)` : step.emotion;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** The strongest first. */
export function ranked(all: Partial<Record<Emotion, number>>): [Emotion, number][] {
  return (Object.entries(all) as [Emotion, number][]).toSorted(([, a], [, b]) => b - a);
}
