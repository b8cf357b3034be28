import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';
import { checkNames, modelProblem, throwIfAny } from './checks.ts';
import type { Context } from './context.ts';
import { RequestFailedError } from './errors.ts';
import { failingAs } from './failure.ts';
import { readJson } from './http/answer.ts';
import type { Call } from './http/transport.ts';
import { speakable, withQuery } from './http/url.ts';
import { readWhole } from './source/input.ts';
import type { AudioInput, DiscreteOptions, DiscreteResult } from './types.ts';

const OPTIONS = ['model', 'signal'] as const;

/** The largest clip over a slow line takes longer than other calls may; whoever is in a hurry gives a signal. */
const LIMIT_MS = 180_000;

/** Short recordings of 4 to 10 seconds, answered at once. Nothing is retried: the moment would be over. */
export class DiscreteInterface {
  readonly #begin: () => Context;

  /**
   * `begin` checks the settings; every operation calls it first.
   * @internal
   */
  constructor(begin: () => Context) {
    this.#begin = begin;
  }

  /** The emotion of one short recording. */
  async emotions(file: AudioInput, options: DiscreteOptions = {}): Promise<DiscreteResult> {
    check('discrete.emotions', options);
    const context = this.#begin();
    return failingAs(RequestFailedError, undefined, async () => {
      options.signal?.throwIfAborted();
      const { blob, name } = await readWhole(context.platform, file, DISCRETE_LIMITS.maxFileBytes);
      const form = new FormData();
      form.append('file', blob, name);
      return post(context, options, { body: form });
    });
  }

  /** The same for samples in memory: mono, 44,100 a second, 4 to 10 seconds of them, each from -1 to 1. */
  async samples(samples: ArrayLike<number>, options: DiscreteOptions = {}): Promise<DiscreteResult> {
    check('discrete.samples', options);
    throwIfAny([samplesProblem(samples)]);
    const context = this.#begin();
    // The documented form is a JSON string that holds a JSON object.
    const body = JSON.stringify(JSON.stringify({ payload: [Array.from(samples)] }));
    const headers = { 'content-type': 'application/json' };
    return failingAs(RequestFailedError, undefined, () => post(context, options, { body, headers }));
  }
}

function check(operation: string, options: DiscreteOptions): void {
  checkNames(operation, options, OPTIONS);
  throwIfAny([modelProblem(options.model)]);
}

async function post(
  context: Context,
  { model, signal }: DiscreteOptions,
  rest: Pick<Call, 'body' | 'headers'>,
): Promise<DiscreteResult> {
  const url = withQuery(context.config.discreteUrl, { model });
  const deadline = AbortSignal.timeout(LIMIT_MS);
  const answer = await context.call({ method: 'POST', url, signal, deadline, ...rest });
  return readJson<DiscreteResult>(
    answer,
    speakable(url),
    ({ main_emotion, confidence, all_predictions }) =>
      typeof main_emotion === 'string' &&
      typeof confidence === 'number' &&
      typeof all_predictions === 'object',
  );
}

function samplesProblem(samples: ArrayLike<number>): string | undefined {
  const { minSeconds, maxSeconds, payloadSampleRate, maxSampleMagnitude } = DISCRETE_LIMITS;
  const seconds = samples.length / payloadSampleRate;
  if (seconds < minSeconds - LENGTH_TOLERANCE_SECONDS || seconds > maxSeconds + LENGTH_TOLERANCE_SECONDS) {
    return `These samples make ${seconds.toFixed(2)} seconds: give ${minSeconds} to ${maxSeconds} seconds at ${payloadSampleRate} Hz.`;
  }
  for (let i = 0; i < samples.length; i++) {
    const sample = samples[i];
    if (typeof sample === 'number' && Math.abs(sample) <= maxSampleMagnitude) continue;
    return `Sample ${i} is ${sample}: give numbers from -1 to 1.`;
  }
  return undefined;
}
