import type { Step } from '@undertone/classifier';
import {
  type AllPredictions,
  type AsynchResult,
  formatTimestamp,
  parseTimestamp,
  type TimelineElement,
} from '@undertone/contract';
import { toResult } from '../prediction.ts';
import type { AsynchRequest } from '../stores/request-store.ts';

/**
 * What is stored of a finished request is a text of two lines: the answer of `GET /prediction`, which is sent as it is,
 * and beside it what else is known of each step. Results stored by version 1.0 have the first line alone.
 */
interface StepDetails {
  readonly start: number;
  readonly end: number;
  readonly speech_seconds: number;
  readonly all_predictions?: AllPredictions;
}

export function writeResult({ id, model }: AsynchRequest, steps: readonly Step[]): string {
  const heard = steps.map((step) => ({
    step,
    result: toResult(step.models[model] as Record<string, number>),
  }));
  const answer: AsynchResult = {
    request_id: id,
    status: 'completed',
    emotions: heard.map(({ step, result: { main_emotion, confidence } }) => ({
      t: formatTimestamp(step.startSeconds),
      emotion: main_emotion,
      confidence,
    })),
  };
  const details: StepDetails[] = heard.map(({ step, result }) => ({
    start: step.startSeconds,
    end: Number(step.endSeconds.toFixed(3)),
    speech_seconds: Number(step.speechSeconds.toFixed(2)),
    all_predictions: result.all_predictions,
  }));
  return `${JSON.stringify(answer)}\n${JSON.stringify(details)}`;
}

/** The text of the answer: neither parsed nor written again, however long the time line is. */
export function answerOf(stored: string): string {
  const end = stored.indexOf('\n');
  return end < 0 ? stored : stored.slice(0, end);
}

export function stepsOf(stored: string, intervalSeconds: number): (TimelineElement & StepDetails)[] {
  const [answer = '', details] = stored.split('\n');
  const { emotions } = JSON.parse(answer) as AsynchResult;
  const known = (details === undefined ? [] : JSON.parse(details)) as StepDetails[];
  return emotions.map((element, i) => {
    const start = parseTimestamp(element.t);
    return { ...element, ...(known[i] ?? { start, end: start + intervalSeconds, speech_seconds: 0 }) };
  });
}
