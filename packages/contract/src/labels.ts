import { ADVISED_MIN_CONFIDENCE, type Emotion } from './emotions.ts';
import { MIN_SPEECH_SECONDS } from './limits.ts';

/** Label of an answer with too little speech: its emotion means nothing. */
export const NO_SPEECH = 'no speech';

/** Label of an answer below the advised confidence. */
export const UNSURE = 'unsure';

/** One letter per emotion, for output where colour is missing or not enough. */
export const EMOTION_LETTERS: Readonly<Record<Emotion, string>> = {
  angry: 'A',
  happy: 'H',
  neutral: 'N',
  sad: 'S',
  nervous: 'V',
  surprised: 'U',
  disgusted: 'D',
};

interface Speech {
  readonly speech?: boolean | undefined;
  readonly speech_seconds?: number | undefined;
}

/** False only if the server said so, as `speech` or as `speech_seconds`. */
export function hasSpeech({ speech, speech_seconds = MIN_SPEECH_SECONDS }: Speech): boolean {
  return speech ?? speech_seconds >= MIN_SPEECH_SECONDS;
}

/** How to count and draw an answer: its emotion if it is certain enough, otherwise the reason why there is none. */
export function labelOf(
  answer: Speech & { readonly emotion: Emotion; readonly confidence: number },
): Emotion | typeof NO_SPEECH | typeof UNSURE {
  if (!hasSpeech(answer)) return NO_SPEECH;
  return answer.confidence < ADVISED_MIN_CONFIDENCE ? UNSURE : answer.emotion;
}
