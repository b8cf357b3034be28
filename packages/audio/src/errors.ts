export type AudioErrorCode =
  | 'bad_request'
  | 'unreadable_audio'
  | 'unsupported_media_type'
  | 'sample_rate_too_low'
  | 'sample_rate_too_high'
  | 'audio_too_short'
  | 'audio_too_long'
  | 'overloaded';

/** A recording we cannot use. The message tells its owner what to do; it never quotes what is in the recording. */
export class AudioError extends Error {
  override readonly name = 'AudioError';
  readonly code: AudioErrorCode;
  /** What the message says in numbers, such as `min_seconds` and `actual_seconds`. */
  readonly figures: Readonly<Record<string, number>>;

  constructor(code: AudioErrorCode, message: string, figures: Readonly<Record<string, number>> = {}) {
    super(message);
    this.code = code;
    this.figures = figures;
  }
}
