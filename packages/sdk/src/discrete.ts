import { DISCRETE_LIMITS, SPEECH_SECONDS_HEADER } from '@undertone/contract';
import { withTimeout } from './abort.ts';
import { checkNames, modelProblem, NUMBERS, numberProblem, throwIfAny, timeoutProblem } from './config.ts';
import { type Call, type Context, operate, readJson } from './http.ts';
import { asCompleted, checkIsList, type ManyOutcome, outcomeOf } from './many.ts';
import { Pace } from './pace.ts';
import { DISCRETE_RETRIES, MANY_RETRIES, type Retries, withRetries } from './retry.ts';
import { encodeSamples, samplesProblems } from './samples.ts';
import { readWhole } from './source.ts';
import type { AudioInput, DiscreteOptions, DiscreteResult, ManyOptions, SamplesOptions } from './types.ts';
import { withoutQuery, withQuery } from './urls.ts';

const OPTIONS = ['model', 'details', 'signal', 'timeout'] as const;

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
    checkNames('discrete.emotions', options, OPTIONS);
    throwIfAny([modelProblem(options.model)]);
    return operate(this.#begin, options, async (context, signal) => {
      const body = await formOf(context, file, signal);
      return post(context, { ...options, signal }, { body });
    });
  }

  /**
   * The emotions of many short recordings, several at a time. Yields each result with its file as soon as it is ready; a
   * failed recording yields its error and does not stop the others. While the server is busy, fewer are sent at a time.
   */
  async *many<File extends AudioInput>(
    files: (Iterable<File> | AsyncIterable<File>) & object,
    options: ManyOptions = {},
  ): AsyncGenerator<ManyOutcome<File>, void, undefined> {
    checkNames('discrete.many', options, ['concurrency', ...OPTIONS]);
    const { concurrency = NUMBERS.concurrency.default, ...each } = options;
    throwIfAny([
      modelProblem(each.model),
      numberProblem('concurrency', concurrency),
      timeoutProblem(each.timeout),
    ]);
    checkIsList(files);
    const context = this.#begin();
    const stop = new AbortController();
    const stopped = each.signal ? AbortSignal.any([each.signal, stop.signal]) : stop.signal;
    const timeout = each.timeout ?? context.config.timeout;
    const pace = new Pace(context.platform, concurrency);
    const classify = (file: File) =>
      outcomeOf(file, () =>
        withTimeout({ signal: stopped, timeout }, async (signal) => {
          const body = await formOf(context, file, signal);
          return post(context, { ...each, signal }, { body }, MANY_RETRIES, pace);
        }),
      );
    try {
      yield* asCompleted(files, concurrency, stopped, classify);
    } finally {
      // The caller stopped reading: cancel the rest.
      stop.abort();
    }
  }

  /**
   * The emotion of mono samples in memory, 4 to 10 seconds: numbers from -1 to 1, or an `Int16Array`. They are sent as a
   * WAV, unless they have exactly the shape of the documented JSON format.
   */
  async samples(samples: ArrayLike<number>, options: SamplesOptions = {}): Promise<DiscreteResult> {
    checkNames('discrete.samples', options, ['sampleRate', ...OPTIONS]);
    const { sampleRate = DISCRETE_LIMITS.payloadSampleRate, ...rest } = options;
    throwIfAny([modelProblem(options.model), ...samplesProblems(samples, sampleRate)]);
    return operate(this.#begin, options, (context, signal) =>
      post(context, { ...rest, signal }, encodeSamples(samples, sampleRate)),
    );
  }
}

/** Reads the input once into memory, so that it can be sent again. */
async function formOf(
  context: Context,
  file: AudioInput,
  signal: AbortSignal | undefined,
): Promise<FormData> {
  const { blob, name } = await readWhole(context.platform, file, DISCRETE_LIMITS.maxFileBytes, signal);
  const body = new FormData();
  body.append('file', blob, name);
  return body;
}

async function post(
  context: Context,
  { model, details, signal }: DiscreteOptions,
  rest: Pick<Call, 'body' | 'headers'>,
  rule: Omit<Retries, 'what'> = DISCRETE_RETRIES,
  pace = new Pace(context.platform, 1),
): Promise<DiscreteResult> {
  const url = withQuery(context.config.discreteUrl, { model, details: details ? 'true' : undefined });
  const retries = { ...rule, what: 'Classifying', signal };
  const response = await withRetries({ log: context.log, platform: pace }, retries, () =>
    pace.run(signal, () => {
      const timeout = AbortSignal.timeout(TIMEOUT_MS);
      return context.call({ method: 'POST', url, signal, timeout, ...rest });
    }),
  );
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
