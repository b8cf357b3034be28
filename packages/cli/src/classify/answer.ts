import { AudioError } from '@undertone/audio';
import {
  DISCRETE_LIMITS,
  type DiscreteResult,
  hasSpeech,
  LENGTH_TOLERANCE_SECONDS,
  labelOf,
  MODELS,
  type ModelId,
  NO_SPEECH,
} from '@undertone/contract';
import { UndertoneError } from '@undertone/sdk';
import type { Output, RowShape } from '../output.ts';
import { explain } from '../user-error.ts';

export const LONGER =
  'Use `undertone upload` for longer recordings: it gives an emotion for every 5 seconds.';

/** The result of one short recording. */
export interface Answer {
  readonly file: string;
  readonly seconds: number;
  readonly speech_seconds: number;
  readonly result: DiscreteResult;
}

export interface Failure {
  readonly file: string;
  readonly error: unknown;
}

export function answerLabel({ speech_seconds, result: { main_emotion: emotion, confidence } }: Answer) {
  return labelOf({ emotion, confidence, speech_seconds });
}

/** Shorter than the service accepts: the model has less to go by. */
export function isShort({ seconds }: Answer): boolean {
  return seconds < DISCRETE_LIMITS.minSeconds - LENGTH_TOLERANCE_SECONDS;
}

export function rowShape(model: ModelId): RowShape {
  const columns = ['file', 'emotion', 'confidence', 'seconds', 'speech_seconds', ...MODELS[model], 'short'];
  return { columns, field: 'main_emotion' };
}

export function writeAnswer(output: Output, answer: Answer | Failure): Promise<void> {
  if ('error' in answer) return output.writeError({ file: answer.file, error: errorAsJson(answer.error) });
  const { file, result } = answer;
  const { main_emotion, confidence, all_predictions } = result;
  const seconds = round(answer.seconds);
  const speech_seconds = round(answer.speech_seconds);
  const speech = hasSpeech(answer);
  const short = isShort(answer);
  const emotion = speech ? main_emotion : NO_SPEECH;
  return output.write({ file, seconds, speech_seconds, speech, short, ...result }, [
    { file, emotion, confidence, seconds, speech_seconds, ...all_predictions, short },
  ]);
}

function errorAsJson(error: unknown): object {
  const detail = explain(error);
  if (error instanceof AudioError) return { code: error.code, detail, ...error.figures };
  return error instanceof UndertoneError ? { code: error.code, detail } : { detail };
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
