import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DISCRETE_LIMITS } from '@undertone/contract';
import { FORM_TYPE, form } from '@undertone/testing/form';
import { VOICES } from '@undertone/testing/paths';
import { voiceAt, voiceNames } from '@undertone/testing/stream-audio';
import { stereoCall, talkWav } from '@undertone/testing/talk';
import { writeWav } from '@undertone/testing/wav';

/** One window of the model, so that clips, recordings and streams can be counted in the same unit. */
export const CLIP_SECONDS = 5;
const RECORDING_SECONDS = 300;

export interface ClipBody {
  readonly type: string;
  readonly body: Buffer;
}

export interface Recording {
  readonly file: Buffer;
  readonly parts: number;
  readonly query: Readonly<Record<string, string>>;
  /** What its result must have: steps, of all channels. */
  readonly steps: number;
  /** What it costs, in windows of 5 s. */
  readonly windows: number;
}

/** Short recordings as callers send them: mostly WAV, also compressed, sometimes samples. */
export async function clipBodies(): Promise<ClipBody[]> {
  const names = await voiceNames();
  const name = (i: number) => names[i % names.length] ?? '';
  const mp3 = ['-c:a', 'libmp3lame', '-b:a', '128k', '-f', 'mp3'];
  const ogg = ['-c:a', 'libopus', '-b:a', '64k', '-f', 'ogg'];
  return [
    file('voice.wav', writeWav(await voiceAt(name(0), 44_100, CLIP_SECONDS))),
    file('voice.mp3', await encoded(name(1), CLIP_SECONDS, mp3)),
    file('voice.wav', writeWav(await voiceAt(name(2), 16_000, CLIP_SECONDS), { sampleRate: 16_000 })),
    file('voice.ogg', await encoded(name(3), CLIP_SECONDS, ogg)),
    file('voice.wav', writeWav(await voiceAt(name(4), 8_000, CLIP_SECONDS), { sampleRate: 8_000 })),
    await samples(name(5)),
    file('voice.wav', writeWav(await voiceAt(name(6), 48_000, CLIP_SECONDS), { sampleRate: 48_000 })),
  ];
}

/** Long recordings: WAV, MP3 and both sides of a call. */
export async function recordings(): Promise<Recording[]> {
  const wav = talkWav(RECORDING_SECONDS);
  const [name = ''] = await voiceNames();
  const mp3 = await encoded(name, RECORDING_SECONDS, ['-c:a', 'libmp3lame', '-b:a', '64k', '-f', 'mp3']);
  const half = talkWav(RECORDING_SECONDS / 2);
  const steps = RECORDING_SECONDS / CLIP_SECONDS;
  return [
    { file: wav, parts: 3, query: {}, steps, windows: steps },
    { file: mp3, parts: 2, query: {}, steps, windows: steps },
    { file: stereoCall(half, half), parts: 2, query: { channels: 'separate' }, steps, windows: steps },
  ];
}

function file(fileName: string, content: Buffer): ClipBody {
  const type = fileName.replace('voice.', 'audio/');
  return { type: FORM_TYPE, body: form({ name: 'file', fileName, type, content }) };
}

async function samples(name: string): Promise<ClipBody> {
  const voice = await voiceAt(name, DISCRETE_LIMITS.payloadSampleRate, CLIP_SECONDS);
  const payload = [Array.from(voice, (sample) => Number(sample.toFixed(5)))];
  return { type: 'application/json', body: Buffer.from(JSON.stringify({ payload })) };
}

/** An example voice, repeated to the given length. */
async function encoded(name: string, seconds: number, codec: readonly string[]): Promise<Buffer> {
  const input = ['-loglevel', 'error', '-stream_loop', '-1', '-i', join(VOICES, name), '-t', String(seconds)];
  const options = { encoding: 'buffer', maxBuffer: 2 ** 27 } as const;
  const { stdout } = await promisify(execFile)('ffmpeg', [...input, ...codec, 'pipe:1'], options);
  return stdout;
}
