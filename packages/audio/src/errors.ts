import type { ErrorCode } from '@undertone/contract';

export type AudioErrorCode = Extract<
  ErrorCode,
  | 'bad_request'
  | 'unreadable_audio'
  | 'unsupported_media_type'
  | 'sample_rate_too_low'
  | 'sample_rate_too_high'
  | 'audio_too_short'
  | 'audio_too_long'
  | 'result_too_large'
  | 'overloaded'
>;

/** A recording that cannot be used. The message says what to do next; it never quotes the recording. */
export class AudioError extends Error {
  override readonly name = 'AudioError';
  readonly code: AudioErrorCode;
  /** The numbers of the message, such as `min_seconds` and `actual_seconds`. */
  readonly figures: Readonly<Record<string, number>>;

  constructor(code: AudioErrorCode, message: string, figures: Readonly<Record<string, number>> = {}) {
    super(message);
    this.code = code;
    this.figures = figures;
  }
}

/**
 * ffmpeg was killed or crashed in the middle of a recording. What it had decoded until then is not the recording, and the
 * recording need not be the cause: another attempt may succeed.
 */
export class DecoderDiedError extends Error {
  override readonly name = 'DecoderDiedError';

  constructor() {
    super('ffmpeg, which reads this format, stopped unexpectedly. Try again, or send the recording as WAV.');
  }
}

export function unreadable(message: string): AudioError {
  return new AudioError('unreadable_audio', message);
}

/** For recordings that only ffmpeg reads, `container` being what `sniff` made of them. */
export function needsFfmpeg(container: string): AudioError {
  const kinds: Record<string, string> = { wav: 'compressed WAV', unknown: 'in an unknown format' };
  return new AudioError(
    'unsupported_media_type',
    `This recording is ${kinds[container] ?? container}. This server reads only WAV until ffmpeg is installed on it. ` +
      'Send WAV, or install ffmpeg there (apt-get install ffmpeg, brew install ffmpeg).',
  );
}
