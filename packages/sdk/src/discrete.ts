import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS, SPEECH_SECONDS_HEADER } from '@undertone/contract';
import { checkNames, modelProblem, NUMBERS, numberProblem, throwIfAny } from './config.ts';
import { type Call, type Context, readJson } from './http.ts';
import { asCompleted, type ManyOutcome, outcomeOf, SharedPause } from './many.ts';
import { DISCRETE_RETRIES, MANY_RETRIES, type Retries, withRetries } from './retry.ts';
import { readWhole } from './source.ts';
import type { AudioInput, DiscreteOptions, DiscreteResult, ManyOptions } from './types.ts';
import { withoutQuery, withQuery } from './urls.ts';

const OPTIONS = ['model', 'details', 'signal'] as const;

/** Longer than for other calls: the largest clip must fit through a slow connection. */
const TIMEOUT_MS = 180_000;

/** Short recordings of 4 to 10 seconds. */
export class DiscreteInterface {
  readonly #begin: () => Context;

  /**
   * Every operation first calls `begin`, which checks the settings.
   * @internal
   */
  constructor(begin: () => Context) {
    this.#begin = begin;
  }

  /** The emotion of one short recording. */
  async emotions(file: AudioInput, options: DiscreteOptions = {}): Promise<DiscreteResult> {
    check('discrete.emotions', options);
    const context = this.#begin();
    return post(context, options, { body: await formOf(context, file, options.signal) });
  }

  /**
   * The emotions of many short recordings, several at a time. Yields each result with its file as soon as it is ready; a
   * failed recording yields its error and does not stop the others. When the server is busy, all wait as long as it asks.
   */
  async *many<File extends AudioInput>(
    files: Iterable<File> | AsyncIterable<File>,
    options: ManyOptions = {},
  ): AsyncGenerator<ManyOutcome<File>, void, undefined> {
    checkNames('discrete.many', options, ['concurrency', ...OPTIONS]);
    const { concurrency = NUMBERS.concurrency.default, ...each } = options;
    throwIfAny([modelProblem(each.model), numberProblem('concurrency', concurrency)]);
    const context = this.#begin();
    const stop = new AbortController();
    const signal = each.signal ? AbortSignal.any([each.signal, stop.signal]) : stop.signal;
    const pause = new SharedPause(context.platform);
    const classify = (file: File) =>
      outcomeOf(file, async () => {
        const body = await formOf(context, file, signal);
        return post(context, { ...each, signal }, { body }, MANY_RETRIES, pause);
      });
    try {
      yield* asCompleted(files, concurrency, classify);
    } finally {
      // The caller stopped reading: cancel the rest.
      stop.abort();
    }
  }

  /** The emotion of samples in memory: mono, 44,100 Hz, 4 to 10 seconds, values from -1 to 1. */
  async samples(samples: ArrayLike<number>, options: DiscreteOptions = {}): Promise<DiscreteResult> {
    check('discrete.samples', options);
    throwIfAny([samplesProblem(samples)]);
    const context = this.#begin();
    // The documented format is a JSON string that contains a JSON object.
    const body = JSON.stringify(JSON.stringify({ payload: [Array.from(samples)] }));
    return post(context, options, { body, headers: { 'content-type': 'application/json' } });
  }
}

function check(operation: string, options: DiscreteOptions): void {
  checkNames(operation, options, OPTIONS);
  throwIfAny([modelProblem(options.model)]);
}

/** Reads the input once into memory, so that it can be sent again. */
async function formOf(
  context: Context,
  file: AudioInput,
  signal: AbortSignal | undefined,
): Promise<FormData> {
  signal?.throwIfAborted();
  const { blob, name } = await readWhole(context.platform, file, DISCRETE_LIMITS.maxFileBytes);
  const body = new FormData();
  body.append('file', blob, name);
  return body;
}

async function post(
  context: Context,
  { model, details, signal }: DiscreteOptions,
  rest: Pick<Call, 'body' | 'headers'>,
  rule: Omit<Retries, 'what'> = DISCRETE_RETRIES,
  pause = new SharedPause(context.platform),
): Promise<DiscreteResult> {
  const url = withQuery(context.config.discreteUrl, { model, details: details ? 'true' : undefined });
  const retries = { ...rule, what: 'Classifying', signal };
  const response = await withRetries({ log: context.log, platform: pause }, retries, async () => {
    await pause.over;
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    return context.call({ method: 'POST', url, signal, timeout, ...rest });
  });
  const result = readJson<DiscreteResult>(
    response,
    withoutQuery(url),
    ({ main_emotion, confidence, all_predictions }) =>
      typeof main_emotion === 'string' &&
      typeof confidence === 'number' &&
      typeof all_predictions === 'object',
  );
  const speechSeconds = Number(response.headers.get(SPEECH_SECONDS_HEADER) || Number.NaN);
  // Not enumerable: as JSON or in a comparison, a result is exactly what the server sent.
  if (speechSeconds >= 0) Object.defineProperty(result, 'speechSeconds', { value: speechSeconds });
  return result;
}

function samplesProblem(samples: ArrayLike<number>): string | undefined {
  const { minSeconds, maxSeconds, payloadSampleRate, maxSampleMagnitude } = DISCRETE_LIMITS;
  const seconds = samples.length / payloadSampleRate;
  if (seconds < minSeconds - LENGTH_TOLERANCE_SECONDS || seconds > maxSeconds + LENGTH_TOLERANCE_SECONDS) {
    return `The samples last ${seconds.toFixed(2)} seconds: pass ${minSeconds} to ${maxSeconds} seconds at ${payloadSampleRate} Hz.`;
  }
  for (let i = 0; i < samples.length; i++) {
    const sample = samples[i];
    if (typeof sample === 'number' && Math.abs(sample) <= maxSampleMagnitude) continue;
    return `Sample ${i} is ${sample}: pass numbers from -1 to 1.`;
  }
  return undefined;
}
