import { setTimeout as sleep } from 'node:timers/promises';
import { ByteReader, type Encoding, readSound, readWavHeader, SNIFF_BYTES, sniff } from '@undertone/audio';
import { SAMPLE_RATE, STREAM_LIMITS } from '@undertone/contract';
import type { StreamEncoding } from '@undertone/sdk';
import { UserError } from './user-error.ts';

/** What samples without a header are. Any of them says that there is none. */
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
  /** Raw samples, cut anywhere. */
  readonly pieces: AsyncIterable<Uint8Array>;
}

const ENCODINGS: Partial<Record<Encoding, StreamEncoding>> = {
  pcm16: 'pcm_s16le',
  float32: 'pcm_f32le',
  mulaw: 'mulaw',
  alaw: 'alaw',
};
const SAMPLE_BYTES: Record<StreamEncoding, number> = { pcm_s16le: 2, pcm_f32le: 4, mulaw: 1, alaw: 1 };
/** A file is played in pieces of a tenth of a second, as a microphone would bring them. */
const PIECES_PER_SECOND = 10;

/** Samples behind a WAV header, which says what they are, or raw ones, of which the flags say it. */
export async function openLiveAudio(source: AsyncIterable<Uint8Array>, raw: RawFlags): Promise<LiveAudio> {
  const reader = new ByteReader(source);
  const isWav = sniff(await reader.peek(SNIFF_BYTES)) === 'wav';
  if (!isWav && Object.keys(raw).length === 0) {
    throw new UserError(
      `This is not WAV. For raw samples say what they are, as in --rate 16000 --encoding pcm_s16le. ${CONVERT}`,
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

function liveAudio(format: LiveAudio['format'], pieces: AsyncIterable<Uint8Array>): LiveAudio {
  const { sampleRate, encoding, channels } = format;
  return { format, bytesPerSecond: sampleRate * SAMPLE_BYTES[encoding] * channels, pieces };
}

const CONVERT =
  'ffmpeg reads every other format: `ffmpeg -v error -i FILE -f wav -c:a pcm_s16le - | undertone listen -`.';

/** As fast as it would be spoken. */
export async function* inRealTime({ pieces, bytesPerSecond }: LiveAudio): AsyncGenerator<Uint8Array> {
  const start = performance.now();
  const size = Math.ceil(bytesPerSecond / PIECES_PER_SECOND);
  let played = 0;
  for await (const bytes of pieces) {
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size);
      played += piece.length;
      // A microphone has a piece when it is over.
      await sleep(start + (1_000 * played) / bytesPerSecond - performance.now());
      yield piece;
    }
  }
}
