import { DISCRETE_LIMITS, type ModelId } from '@undertone/contract';
import { type EmotionClient, type Progress, UndertoneError } from '@undertone/sdk';
import { concurrencyLimit } from './concurrency.ts';
import { channelsDiffer, isAtMost, type Recording } from './recording.ts';
import { ofClip, ofRecording, type Result } from './result.ts';

export interface ClassifyOptions {
  readonly model: ModelId;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** All cards share these slots, however many files are dropped. */
const limited = concurrencyLimit(3);

/** Sends up to 10 s to the discrete interface and uploads longer recordings. If the length is unknown, the server decides. */
export function classify(
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
  return limited(async () => {
    signal.throwIfAborted();
    if (isShort) {
      try {
        return ofClip(await client.discrete.emotions(file, { model, signal }), model, seconds ?? 0);
      } catch (error) {
        if (!(error instanceof UndertoneError && error.code === 'audio_too_long')) throw error;
      }
    }
    const channels = channelsDiffer(recording) ? 'separate' : 'mix';
    return ofRecording(await client.asynch.classify(file, { ...options, channels }), model, seconds);
  });
}
