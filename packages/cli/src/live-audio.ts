import { setTimeout as sleep } from 'node:timers/promises';
import { ByteReader, type Encoding, readSound, readWavHeader, SNIFF_BYTES, sniff } from '@undertone/audio';
import { SAMPLE_RATE, STREAM_LIMITS } from '@undertone/contract';
import type { StreamEncoding } from '@undertone/sdk';
import { UserError } from './user-error.ts';

/** Format of raw samples. Any of these flags means that the input has no header. */
export interface RawFlags {
  readonly rate?: number;
  readonly encoding?: StreamEncoding;
  readonly channels?: number;
}

export interface LiveAudio {
  readonly format: {
    readonly sampleRate: number;
    readonly encoding: StreamEncoding;
    readonly channels: number;
  };
  readonly bytesPerSecond: number;
  /** Raw samples, in chunks of any size. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

const ENCODINGS: Partial<Record<Encoding, StreamEncoding>> = {
  pcm16: 'pcm_s16le',
  float32: 'pcm_f32le',
  mulaw: 'mulaw',
  alaw: 'alaw',
};
const SAMPLE_BYTES: Record<StreamEncoding, number> = { pcm_s16le: 2, pcm_f32le: 4, mulaw: 1, alaw: 1 };
/** A file is sent in chunks of a tenth of a second, like a microphone. */
const CHUNKS_PER_SECOND = 10;

const CONVERT =
  'Convert other formats with ffmpeg: `ffmpeg -v error -i FILE -f wav -c:a pcm_s16le - | undertone listen -`.';

/** Reads the format from a WAV header, or from the flags if there is none. */
export async function openLiveAudio(source: AsyncIterable<Uint8Array>, raw: RawFlags): Promise<LiveAudio> {
  const reader = new ByteReader(source);
  const isWav = sniff(await reader.peek(SNIFF_BYTES)) === 'wav';
  if (!isWav && Object.keys(raw).length === 0) {
    throw new UserError(
      `This is not WAV. For raw samples give their format, as in --rate 16000 --encoding pcm_s16le. ${CONVERT}`,
    );
  }
  if (!isWav) {
    const { rate: sampleRate = SAMPLE_RATE.ideal, encoding = 'pcm_s16le', channels = 1 } = raw;
    return liveAudio({ sampleRate, encoding, channels }, reader.rest());
  }
  const header = await readWavHeader(reader);
  const encoding = header && ENCODINGS[header.format.encoding];
  if (header === null || !encoding || header.format.channels > STREAM_LIMITS.maxChannels) {
    throw new UserError(
      `This WAV file is not 16-bit, float, mu-law or A-law in one or two channels. ${CONVERT}`,
    );
  }
  const { sampleRate, channels } = header.format;
  return liveAudio({ sampleRate, encoding, channels }, readSound(reader, header));
}

function liveAudio(format: LiveAudio['format'], chunks: AsyncIterable<Uint8Array>): LiveAudio {
  const { sampleRate, encoding, channels } = format;
  return { format, bytesPerSecond: sampleRate * SAMPLE_BYTES[encoding] * channels, chunks };
}

/** Yields the samples at the speed of speech. */
export async function* inRealTime({ chunks, bytesPerSecond }: LiveAudio): AsyncGenerator<Uint8Array> {
  const start = performance.now();
  const size = Math.ceil(bytesPerSecond / CHUNKS_PER_SECOND);
  let played = 0;
  for await (const bytes of chunks) {
    for (let at = 0; at < bytes.length; at += size) {
      const chunk = bytes.subarray(at, at + size);
      played += chunk.length;
      // Like a microphone: a chunk is available when its last sample has been recorded.
      await sleep(Math.max(0, start + (1_000 * played) / bytesPerSecond - performance.now()));
      yield chunk;
    }
  }
}
