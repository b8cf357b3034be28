import { DISCRETE_LIMITS } from '@undertone/contract';
import { UndertoneError } from '@undertone/sdk';

export interface Explained {
  readonly text: string;
  /** The same again may succeed. */
  readonly canRetry: boolean;
}

/** Also a key that was refused: there may be another one by now. */
const TEMPORARY = [
  'invalid_api_key',
  'connection_failed',
  'timed_out',
  'overloaded',
  'rate_limited',
  'internal',
  'request_timeout',
];

/** An error in words for somebody who has a file and no API. */
export function explain(error: unknown): Explained {
  if (!(error instanceof UndertoneError)) {
    return { text: error instanceof Error ? error.message : String(error), canRetry: false };
  }
  const canRetry = TEMPORARY.includes(error.code ?? '');
  return { text: textOf(error), canRetry };
}

function textOf(error: UndertoneError): string {
  const { code, problem, retryAfterSeconds } = error;
  const wait = retryAfterSeconds === undefined ? '' : ` Try again in ${retryAfterSeconds} seconds.`;
  switch (code) {
    case 'connection_failed':
      return 'The server does not answer. Is it still running?';
    case 'timed_out':
    case 'request_timeout':
      return 'The server took too long to answer. Is it still running?';
    case 'overloaded':
      return `The server is busy.${wait}`;
    case 'rate_limited':
      return `Too many recordings at once with this key.${wait}`;
    case 'internal':
      return 'Something went wrong on the server. Its log has the reason.';
    case 'audio_too_short': {
      const { actual_seconds: actual } = problem ?? {};
      const length = actual === undefined ? 'This file is too short' : `This file is ${seconds(actual)} long`;
      return `${length}. A recording needs at least ${DISCRETE_LIMITS.minSeconds} seconds.`;
    }
    case 'unreadable_audio':
      return 'This is not an audio file we can read. Try converting it to WAV.';
    case 'unsupported_media_type':
      return 'This server cannot read this format. Convert the file to WAV, or install ffmpeg on the server.';
    case 'file_too_large':
      return 'This file is too large. Up to 1 GiB is accepted: split it, or save it as MP3.';
    case 'storage_limit':
      return 'The storage of this key is full. Delete recordings from the server, then try again.';
    case 'gone':
      return 'The server no longer has this recording: it was deleted, or its 24 hours are over.';
    case 'not_found':
      return 'The server has no such recording for this key.';
    default:
      return error.message;
  }
}

function seconds(value: number): string {
  return `${Number(value.toFixed(1))} s`;
}
