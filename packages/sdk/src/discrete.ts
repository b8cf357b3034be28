import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS, SPEECH_SECONDS_HEADER } from '@undertone/contract';
import { checkNames, modelProblem, throwIfAny } from './config.ts';
import { type Call, type Context, readJson } from './http.ts';
import { DISCRETE_RETRIES, withRetries } from './retry.ts';
import { readWhole } from './source.ts';
import type { AudioInput, DiscreteOptions, DiscreteResult } from './types.ts';
import { withoutQuery, withQuery } from './urls.ts';

const OPTIONS = ['model', 'signal'] as const;

/** The largest clip over a slow line takes longer than other calls may; whoever is in a hurry gives a signal. */
const TIMEOUT_MS = 180_000;

/** Short recordings of 4 to 10 seconds, answered at once. */
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
    options.signal?.throwIfAborted();
    // Streams are read here, once: what is sent is in memory and can be sent again.
    const { blob, name } = await readWhole(context.platform, file, DISCRETE_LIMITS.maxFileBytes);
    const body = new FormData();
    body.append('file', blob, name);
    return post(context, options, { body });
  }

  /** The same for samples in memory: mono, 44,100 a second, 4 to 10 seconds of them, each from -1 to 1. */
  async samples(samples: ArrayLike<number>, options: DiscreteOptions = {}): Promise<DiscreteResult> {
    check('discrete.samples', options);
    throwIfAny([samplesProblem(samples)]);
    const context = this.#begin();
    // The documented form is a JSON string that contains a JSON object.
    const body = JSON.stringify(JSON.stringify({ payload: [Array.from(samples)] }));
    return post(context, options, { body, headers: { 'content-type': 'application/json' } });
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
  const answer = await withRetries(context, { ...DISCRETE_RETRIES, what: 'Classifying', signal }, () =>
    context.call({ method: 'POST', url, signal, timeout: AbortSignal.timeout(TIMEOUT_MS), ...rest }),
  );
  const result = readJson<DiscreteResult>(
    answer,
    withoutQuery(url),
    ({ main_emotion, confidence, all_predictions }) =>
      typeof main_emotion === 'string' &&
      typeof confidence === 'number' &&
      typeof all_predictions === 'object',
  );
  const speechSeconds = Number(answer.headers.get(SPEECH_SECONDS_HEADER) || Number.NaN);
  // Not enumerable: as JSON, or compared with another, a result is exactly what the service answered.
  if (speechSeconds >= 0) Object.defineProperty(result, 'speechSeconds', { value: speechSeconds });
  return result;
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
