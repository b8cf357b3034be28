import { DISCRETE_LIMITS, type ModelId } from '@undertone/contract';
import {
  type AsynchResult,
  type EmotionClient,
  PredictionTimeoutError,
  type Progress,
  UndertoneError,
} from '@undertone/sdk';
import { isAtMost, type Recording } from './recording.ts';
import { ofClip, ofRecording, type Result } from './result.ts';

export interface ClassifyOptions {
  readonly model: ModelId;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** Up to 10 s is answered at once, anything longer is uploaded. Where the length is not known the server is asked. */
export async function classify(
  client: EmotionClient,
  recording: Recording,
  options: ClassifyOptions,
): Promise<Result> {
  const { file, seconds } = recording;
  const { model, signal } = options;
  const isShort =
    seconds === undefined
      ? file.size <= DISCRETE_LIMITS.maxFileBytes
      : isAtMost(seconds, DISCRETE_LIMITS.maxSeconds);
  if (isShort) {
    try {
      return ofClip(await client.discrete.emotions(file, { model, signal }), model, seconds ?? 0);
    } catch (error) {
      if (!(error instanceof UndertoneError && error.code === 'audio_too_long')) throw error;
    }
  }
  const id = await client.asynch.upload(file, options);
  return ofRecording(await waitFor(client, id, options), model, seconds);
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;

/** Short recordings are done in a moment, long ones may take minutes: we ask less and less often. */
async function waitFor(client: EmotionClient, id: string, options: ClassifyOptions): Promise<AsynchResult> {
  const { onProgress, signal } = options;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    try {
      return await client.asynch.emotions(id, { maxTries: 1, onProgress, signal });
    } catch (error) {
      if (!(error instanceof PredictionTimeoutError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    signal.throwIfAborted();
  }
}
