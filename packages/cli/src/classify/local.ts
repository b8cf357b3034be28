import { createReadStream } from 'node:fs';
import { availableParallelism } from 'node:os';
import { AudioError } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS, type ModelId } from '@undertone/contract';
import { resultOf } from '@undertone/server/prediction';
import { inOrder } from '../batch.ts';
import { samplesOf } from '../compare/classify-file.ts';
import { explainReading } from '../files.ts';
import { UserError } from '../user-error.ts';
import { type Answer, type Failure, LONGER } from './answer.ts';

const { maxSeconds, maxFileBytes } = DISCRETE_LIMITS;
/** The model's own minimum. The service asks for more. */
const MIN_SECONDS = 1;
const ACCEPTED = `${MIN_SECONDS} to ${maxSeconds} s are accepted.`;

export interface LocalModel {
  readonly weights: string;
  readonly modelsDir: string;
  readonly model: ModelId;
}

/** Classifies on this machine, in the order of the files. */
export async function* classifyHere(
  files: readonly string[],
  { weights, modelsDir, model }: LocalModel,
): AsyncGenerator<Answer | Failure> {
  if (files.length === 0) return;
  const workers = Math.min(files.length, availableParallelism());
  const classifier = await Classifier.start({ weights, workers, ...(modelsDir && { modelsDir }) });
  try {
    checkModel(classifier, model);
    yield* inOrder(files, workers, (file) => classify(file, classifier, model));
  } finally {
    await classifier.close();
  }
}

function checkModel({ catalog }: Classifier, model: ModelId): void {
  const ids = catalog.models.map(({ id }) => id);
  if (!ids.includes(model)) {
    throw new UserError(
      `The models folder has no model "${model}". Choose from ${ids.join(', ')} with --model.`,
    );
  }
}

/** Never rejects, so that one bad file does not stop the others. */
async function classify(file: string, classifier: Classifier, model: ModelId): Promise<Answer | Failure> {
  try {
    const { models, seconds, speechSeconds } = await predict(await readBytes(file), classifier);
    return { file, seconds, speech_seconds: speechSeconds, result: resultOf(models, model) };
  } catch (error) {
    return { file, error: inLocalWords(explainReading(error)) };
  }
}

async function predict(bytes: Uint8Array<ArrayBuffer>, classifier: Classifier) {
  try {
    return await classifier.classifyClip({ kind: 'file', bytes });
  } catch (error) {
    const seconds = shortSeconds(error);
    if (seconds < MIN_SECONDS - LENGTH_TOLERANCE_SECONDS) throw error;
    const samples = await samplesOf(bytes);
    return { ...(await classifier.classifyWindow(samples, { priority: 'discrete' })), seconds };
  }
}

/** The length of a recording that is too short for the service; 0 for any other error. */
function shortSeconds(error: unknown): number {
  const isShort = error instanceof AudioError && error.code === 'audio_too_short';
  return isShort ? (error.figures['actual_seconds'] ?? 0) : 0;
}

/** Checks the limit while reading, because a pipe has no known size and a large file need not be read completely. */
async function readBytes(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let left: number = maxFileBytes;
  for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
    left -= chunk.length;
    if (left < 0) {
      const size = `larger than ${maxFileBytes / 1024 ** 2} MiB`;
      throw new UserError(`The file is ${size}, too large for ${maxSeconds} s of audio. ${LONGER}`);
    }
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** The audio package's errors name the limits and the paths of the service. */
function inLocalWords(error: unknown): unknown {
  if (!(error instanceof AudioError)) return error;
  const { code, figures } = error;
  const { actual_seconds: actual } = figures;
  const limits = { ...figures, min_seconds: MIN_SECONDS };
  const length = actual === undefined ? `longer than ${maxSeconds} s` : `${actual} s long`;
  if (code === 'audio_too_short') {
    const join = 'Join it with the sentences around it.';
    return new AudioError(code, `The recording is ${length}; ${ACCEPTED} ${join}`, limits);
  }
  if (code === 'audio_too_long') {
    return new AudioError(code, `The recording is ${length}; ${ACCEPTED} ${LONGER}`, limits);
  }
  if (code === 'unsupported_media_type') {
    const install = 'apt-get install ffmpeg, or brew install ffmpeg';
    return new AudioError(code, `The recording is not plain WAV. For other formats: ${install}.`, figures);
  }
  return error;
}
