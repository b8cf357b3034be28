import { ByteReader, type ByteSource } from './byte-reader.ts';
import { AudioError } from './errors.ts';
import { type Recording, transcodeToWav } from './foreign/ffmpeg.ts';
import { findFfmpeg } from './foreign/find-ffmpeg.ts';
import { INDEX_PROBE_BYTES, moveIndexToFront, soundComesBeforeIndex } from './foreign/mp4-index.ts';
import { SNIFF_BYTES, sniff } from './foreign/sniff.ts';
import { HIGHEST_SAMPLE_RATE, LOWEST_SAMPLE_RATE, MODEL_SAMPLE_RATE } from './rates.ts';
import { Resampler } from './resample/resampler.ts';
import { readWavHeader, type WavHeader } from './wav/header.ts';
import { MonoDecoder, readSound } from './wav/samples.ts';

export interface OpenOptions {
  readonly signal?: AbortSignal | undefined;
  /** Where ffmpeg is; null for none. Looked for on the PATH where not given. */
  readonly ffmpegPath?: string | null | undefined;
  /** How long the byte stream will be, where known: makes `declaredSeconds` right for open-ended files. */
  readonly expectedBytes?: number | undefined;
  /** The same recording as a file, for formats that need seeking (long MP4 with the index at its end). */
  readonly filePath?: string | undefined;
}

export interface DecodedAudio {
  /** The container, such as `wav`, `mp4` or `ogg`; `unknown` where ffmpeg read what we did not recognise. */
  readonly format: string;
  /** Of the recording itself; `chunks` are at 16 kHz. */
  readonly sampleRate: number;
  readonly channels: number;
  /** What the header promises, null where it does not. The file may hold less or more. */
  readonly declaredSeconds: number | null;
  /** 16 kHz mono. Can be read once; leaving the loop early lets go of the source. */
  readonly chunks: AsyncIterable<Float32Array>;
  /** Lets go of the source when `chunks` is not going to be read. */
  close(): void;
}

/** An MP4 with its index at the end is held in memory up to this size. */
const MOST_HELD_BYTES = 32 * 1024 * 1024;

/** Any recording -> 16 kHz mono, streaming: reads on only as fast as `chunks` is read. */
export async function openAudio(bytes: ByteSource, options: OpenOptions = {}): Promise<DecodedAudio> {
  const reader = new ByteReader(bytes, options.signal);
  try {
    const start = await reader.peek(SNIFF_BYTES);
    if (start.length === 0) throw new AudioError('unreadable_audio', 'The recording is empty.');
    const format = sniff(start);
    if (format === 'wav') {
      const header = await readWavHeader(reader);
      if (header !== null) return decodedWav('wav', reader, header, options.expectedBytes);
      if (!reader.rewind()) throw new AudioError('unreadable_audio', 'This WAV file has an unknown codec.');
    }
    return await openForeign(format, reader, options);
  } catch (error) {
    reader.close();
    throw error;
  }
}

async function openForeign(format: string, reader: ByteReader, options: OpenOptions): Promise<DecodedAudio> {
  const { signal, filePath } = options;
  const ffmpegPath = options.ffmpegPath === undefined ? await findFfmpeg() : options.ffmpegPath;
  if (ffmpegPath === null) throw needsFfmpeg(format);
  reader.forget();
  let recording: Recording;
  if (filePath !== undefined) {
    reader.close();
    recording = { filePath };
  } else {
    recording = { bytes: format === 'mp4' ? await streamableMp4(reader) : reader.rest() };
  }
  const wav = new ByteReader(transcodeToWav(recording, { ffmpegPath, signal }), signal);
  try {
    const header = (await wav.peek(1)).length > 0 ? await readWavHeader(wav) : null;
    if (header === null) throw new AudioError('unreadable_audio', 'The recording holds no sound.');
    return decodedWav(format, wav, header);
  } catch (error) {
    wav.close();
    throw error;
  }
}

function decodedWav(
  format: string,
  reader: ByteReader,
  header: WavHeader,
  streamBytes?: number,
): DecodedAudio {
  const { sampleRate, channels } = header;
  checkSampleRate(sampleRate);
  reader.forget();
  return {
    format,
    sampleRate,
    channels,
    declaredSeconds: declaredSeconds(header, streamBytes),
    chunks: atModelRate(reader, header),
    close: () => reader.close(),
  };
}

async function* atModelRate(reader: ByteReader, header: WavHeader): AsyncGenerator<Float32Array> {
  try {
    const resampler = new Resampler(header.sampleRate, MODEL_SAMPLE_RATE);
    const decoder = new MonoDecoder(header);
    for await (const bytes of readSound(reader, header)) {
      const chunk = resampler.push(decoder.push(bytes));
      if (chunk.length > 0) yield chunk;
    }
    const tail = resampler.flush();
    if (tail.length > 0) yield tail;
  } finally {
    reader.close();
  }
}

function declaredSeconds(header: WavHeader, streamBytes = Infinity): number | null {
  const bytes = Math.min(header.dataBytes ?? Infinity, Math.max(0, streamBytes - header.dataStart));
  return bytes === Infinity ? null : Math.floor(bytes / header.frameBytes) / header.sampleRate;
}

function checkSampleRate(rate: number): void {
  if (rate < LOWEST_SAMPLE_RATE) {
    throw new AudioError(
      'sample_rate_too_low',
      `The sample rate is ${rate} Hz; at least ${LOWEST_SAMPLE_RATE} Hz are needed. Record at a higher rate.`,
      { min_sample_rate: LOWEST_SAMPLE_RATE, actual_sample_rate: rate },
    );
  }
  if (rate > HIGHEST_SAMPLE_RATE) {
    throw new AudioError(
      'sample_rate_too_high',
      `The sample rate is ${rate} Hz; at most ${HIGHEST_SAMPLE_RATE} Hz are accepted. Resample the recording.`,
      { max_sample_rate: HIGHEST_SAMPLE_RATE, actual_sample_rate: rate },
    );
  }
}

async function streamableMp4(reader: ByteReader): Promise<ByteSource> {
  if (!soundComesBeforeIndex(await reader.peek(INDEX_PROBE_BYTES))) return reader.rest();
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of reader.rest()) {
    length += part.length;
    if (length > MOST_HELD_BYTES) {
      throw new AudioError(
        'unreadable_audio',
        'This MP4 file has its index at the end and is too long to turn around in memory. ' +
          'Move the index to the front (ffmpeg -i in.m4a -c copy -movflags +faststart out.m4a) or send WAV.',
      );
    }
    parts.push(part);
  }
  return once(moveIndexToFront(Buffer.concat(parts)));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function needsFfmpeg(format: string): AudioError {
  const kind = format === 'wav' ? 'compressed WAV' : format;
  const what =
    format === 'unknown' ? 'The format of this recording is not known' : `This recording is ${kind}`;
  return new AudioError(
    'unsupported_media_type',
    `${what}, and without ffmpeg on the machine that reads it only WAV is understood. ` +
      'Send WAV, or install ffmpeg there (apt-get install ffmpeg, brew install ffmpeg).',
  );
}
