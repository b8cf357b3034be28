export type { ByteSource } from './byte-reader.ts';
export { type Clip, type ClipOptions, readClip } from './clip.ts';
export { AudioError, type AudioErrorCode } from './errors.ts';
export { findFfmpeg } from './foreign/find-ffmpeg.ts';
export { type DecodedAudio, type OpenOptions, openAudio } from './open.ts';
export { HIGHEST_SAMPLE_RATE, LOWEST_SAMPLE_RATE, MODEL_SAMPLE_RATE } from './rates.ts';
export { resampleAll } from './resample/all.ts';
export { Resampler } from './resample/resampler.ts';
export { type AudioWindow, type WindowOptions, windows } from './windows.ts';
