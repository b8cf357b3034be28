import { pathToFileURL } from 'node:url';
import type { ModelId } from '@undertone/contract';
import { type DiscreteResult, type EmotionClient, MissingFileError, UndertoneError } from '@undertone/sdk';
import { checkServer } from '../client.ts';
import { explainReading } from '../files.ts';
import { explain } from '../user-error.ts';
import { type Answer, type Failure, LONGER } from './answer.ts';

const SHORTER = 'Without --server `undertone classify` takes recordings from 1 s on.';

/** Classifies on the server, in the order of the files. */
export async function* classifyThere(
  client: EmotionClient,
  files: readonly string[],
  { model, signal }: { readonly model: ModelId; readonly signal: AbortSignal },
): AsyncGenerator<Answer | Failure> {
  // The list of models is not below an address for short recordings alone.
  if (files.length > 1 && !process.env['SERVICE_DISCRETE_URL']) await checkServer(client, model);
  // An object for each file, so that one that is named twice is two.
  const inputs = files.map((file) => (file === '-' ? process.stdin : pathToFileURL(file)));
  const places = new Map<unknown, number>(inputs.map((input, i) => [input, i]));
  const early = new Map<number, Answer | Failure>();
  let next = 0;
  for await (const outcome of client.discrete.many(inputs, { model, details: true, signal })) {
    const place = places.get(outcome.file) ?? 0;
    const file = files[place] ?? '';
    const { result, error } = outcome;
    early.set(place, error ? { file, error: inOwnWords(error) } : answerOf(file, result));
    for (let ready = early.get(next); ready !== undefined; ready = early.get(next)) {
      early.delete(next++);
      yield ready;
    }
  }
}

function answerOf(file: string, answer: DiscreteResult): Answer {
  const { main_emotion, confidence, all_predictions, duration_seconds = 0, speech_seconds = 0 } = answer;
  return {
    file,
    seconds: duration_seconds,
    speech_seconds,
    result: { main_emotion, confidence, all_predictions },
  };
}

const HINTS: Readonly<Record<string, string>> = {
  audio_too_short: SHORTER,
  audio_too_long: LONGER,
  file_too_large: LONGER,
};

function inOwnWords(error: UndertoneError): unknown {
  if (error instanceof MissingFileError) return explainReading(error.cause);
  const hint = HINTS[error.code ?? ''];
  return hint === undefined ? error : new UndertoneError(`${explain(error)} ${hint}`, { ...error });
}
