import { basename } from 'node:path';
import type { ChannelMode, ModelId } from '@undertone/contract';
import {
  type EmotionClient,
  InvalidRequestIdError,
  type Progress,
  UploadFailedError,
  type UploadOptions,
} from '@undertone/sdk';
import { stopReadingInput } from '../interrupt.ts';
import type { OutputFlags } from '../output.ts';
import type { TimelineFlags } from '../timeline.ts';
import { explain, UserError } from '../user-error.ts';
import { recordName, UploadRecords } from './records.ts';

/** Small parts, because parts in flight are sent again after an interruption. */
const PART_SIZE = 2 * 1024 * 1024;

export interface UploadFlags extends TimelineFlags, Omit<OutputFlags, 'csv'> {
  readonly model: ModelId;
  readonly interval: number;
  readonly channels: ChannelMode;
  readonly label?: string;
  readonly webhook?: string;
  readonly wait?: true;
}

/** What every upload of one command shares. */
export interface Upload {
  readonly client: EmotionClient;
  readonly url: string;
  readonly flags: UploadFlags;
  readonly signal: AbortSignal;
}

/** Sends a file, or with --resume its missing parts, and records the request ID for a later --resume. */
export async function send(
  { client, url, flags, signal }: Upload,
  file: string,
  onProgress: (progress: Progress) => void,
): Promise<string> {
  const { model, interval: intervalSeconds, channels, label, webhook: webhookUrl } = flags;
  const recording = { model, intervalSeconds, channels, label, webhookUrl };
  const options: UploadOptions = { ...recording, partSize: PART_SIZE, onProgress, signal };
  if (file === '-') {
    stopReadingInput(signal);
    return client.asynch.upload(process.stdin, options);
  }
  const records = new UploadRecords();
  // If the file cannot be read, the client's error is better than one about a checksum.
  const name = await recordName(file, [url, model, intervalSeconds, channels]).catch(() => undefined);
  let kept: string | undefined;
  const remember = (progress: Progress) => {
    const { requestId } = progress;
    onProgress(progress);
    if (requestId === undefined || requestId === kept || name === undefined) return;
    kept = requestId;
    records.keep(name, requestId).catch((error: Error) => {
      process.stderr.write(`undertone: --resume will not find this upload: ${error.message}\n`);
    });
  };
  const resume = flags.resume && name ? await records.find(name) : undefined;
  if (resume !== undefined) {
    try {
      return await client.asynch.upload(file, { ...options, onProgress: remember, resume });
    } catch (error) {
      if (!(error instanceof InvalidRequestIdError)) throw error;
      process.stderr.write(`The interrupted upload of ${basename(file)} has expired. Starting again.\n`);
    }
  }
  return client.asynch.upload(file, { ...options, onProgress: remember });
}

/** Adds how to continue an interrupted upload. */
export function withResumeHint(
  error: unknown,
  file: string,
  sent: Progress | undefined,
  signal: AbortSignal,
): unknown {
  const isTemporary =
    error instanceof UploadFailedError && (error.status === undefined || error.status >= 429);
  if (sent?.requestId === undefined || !(signal.aborted || isTemporary)) return error;
  const lines = [
    signal.aborted ? `Stopped at ${Math.floor(sent.progress * 100)} %.` : explain(error),
    // Standard input cannot be read again.
    ...(file === '-' ? [] : ['Continue within 24 hours: the same command with --resume.']),
    `Delete what was sent: \`undertone delete ${sent.requestId}\`.`,
  ];
  return new UserError(lines.join('\n'));
}
