import { ASYNCH_LIMITS, DISCRETE_LIMITS, type ModelId } from '@undertone/contract';
import { type EmotionClient, type Progress, UndertoneError } from '@undertone/sdk';
import { concurrencyLimit } from './concurrency.ts';
import type { Recording } from './entry.ts';
import { channelsDiffer, isAtMost, splitChannels } from './recording.ts';
import { ofClip, ofRecording, type Result } from './result.ts';

export interface ClassifyOptions {
  readonly model: ModelId;
  readonly name: string;
  readonly onStart?: () => void;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal: AbortSignal;
  /** The request of an interrupted upload of this recording. */
  readonly resume?: string | undefined;
}

/** All recordings share these slots, however many files are dropped. */
const limited = concurrencyLimit(3);
/** A folder of hundreds of files meets the limits of a key: it waits instead of failing. */
const MAX_WAITS = 10;
const WAIT_SECONDS = 2;

/** Sends up to 10 s to the discrete interface and uploads longer recordings. If the length is unknown, the server decides. */
export function classify(
  client: EmotionClient,
  recording: Recording,
  options: ClassifyOptions,
): Promise<Result> {
  return limited(async () => {
    const { signal, onStart } = options;
    signal.throwIfAborted();
    onStart?.();
    return whileBusy(signal, () => classifyNow(client, recording, options));
  });
}

async function classifyNow(
  client: EmotionClient,
  recording: Recording,
  { model, name, onProgress, signal, resume }: ClassifyOptions,
): Promise<Result> {
  const { file, seconds } = recording;
  const isShort =
    seconds === undefined
      ? file.size <= DISCRETE_LIMITS.maxFileBytes
      : isAtMost(seconds, DISCRETE_LIMITS.maxSeconds);
  if (isShort && resume === undefined) {
    try {
      const isSplit = seconds !== undefined && channelsDiffer(recording);
      const files = isSplit ? await splitChannels(file) : [file];
      const answers = await Promise.all(files.map((it) => client.discrete.emotions(it, { model, signal })));
      return ofClip(answers, model, seconds ?? 0);
    } catch (error) {
      if (!(error instanceof UndertoneError && error.code === 'audio_too_long')) throw error;
    }
  }
  const channels = channelsDiffer(recording) ? 'separate' : 'mix';
  const options = {
    model,
    channels,
    signal,
    label: labelOf(name),
    ...(resume !== undefined && { resume }),
  } as const;
  const answer = await client.asynch.classify(file, { ...options, ...(onProgress && { onProgress }) });
  return ofRecording(answer, model, seconds);
}

/** The name of a file as the label of its request, which the server's list shows. */
export function labelOf(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, ' ').slice(-ASYNCH_LIMITS.maxLabelLength) || 'recording';
}

async function whileBusy<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let waits = 0; ; waits++) {
    try {
      return await attempt();
    } catch (error) {
      const busy =
        error instanceof UndertoneError && (error.code === 'rate_limited' || error.code === 'overloaded');
      if (!busy || waits >= MAX_WAITS) throw error;
      await pause((error.retryAfterSeconds ?? WAIT_SECONDS) * 1000, signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
