import { ASYNCH_LIMITS } from '@undertone/contract';
import { ConfigError } from '../errors.ts';
import { Failure } from '../failure.ts';
import type { Platform } from '../platform/platform.ts';
import type { AudioInput } from '../types.ts';
import { blobSource, bytesSource } from './memory.ts';
import type { AudioSource } from './source.ts';

/** What a recording without a name of its own is called. */
const NAMELESS = 'recording';

/** Makes any input a recording of known length. Close it in the end. */
export async function openSource(platform: Platform, input: AudioInput): Promise<AudioSource> {
  if (typeof input === 'string' || input instanceof URL) return platform.openPath(input);
  if (input instanceof Blob) return blobSource(input, nameOf(input));
  const bytes = asBytes(input);
  if (bytes) return bytesSource(bytes, NAMELESS);
  return platform.spool(limited(chunksOf(input), ASYNCH_LIMITS.maxFileBytes), nameOf(input));
}

/** Reads an input that must not be larger than `maxBytes` as one Blob. */
export async function readWhole(
  platform: Platform,
  input: AudioInput,
  maxBytes: number,
): Promise<{ blob: Blob; name: string }> {
  if (isStream(input)) {
    return { blob: await collect(limited(chunksOf(input), maxBytes)), name: nameOf(input) };
  }
  const source = await openSource(platform, input);
  try {
    if (source.size > maxBytes) throw tooLarge(maxBytes);
    const blob = input instanceof Blob ? input : await collect(source.read(0, source.size));
    return { blob, name: source.name };
  } finally {
    await source.close();
  }
}

/** The last part of a path or address, cut to what the service takes. */
export function baseName(path: string): string {
  const last = path.split(/[\\/]/).filter(Boolean).at(-1) ?? NAMELESS;
  return [...last].slice(0, ASYNCH_LIMITS.maxFileNameLength).join('');
}

export function tooLarge(maxBytes: number): Failure {
  return new Failure(
    `The recording is larger than ${maxBytes / 1024 ** 2} MiB, which is the most the service takes here.`,
    { code: 'file_too_large' },
  );
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Blob> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of chunks) pieces.push(new Uint8Array(chunk));
  return new Blob(pieces);
}

async function* limited(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const chunk of chunks) {
    if (!(chunk instanceof Uint8Array)) {
      throw new ConfigError(['The stream yields text or objects: give one of bytes, without an encoding.']);
    }
    total += chunk.length;
    if (total > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

function asBytes(input: unknown): Uint8Array | undefined {
  if (input instanceof Uint8Array) return input;
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  return undefined;
}

type Stream = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

function isStream(input: AudioInput): input is Stream {
  return !(typeof input === 'string' || input instanceof URL || input instanceof Blob || asBytes(input));
}

function chunksOf(input: unknown): AsyncIterable<Uint8Array> {
  if (typeof input === 'object' && input !== null) {
    if (Symbol.asyncIterator in input) return input as AsyncIterable<Uint8Array>;
    // Some browsers cannot iterate over their own streams yet.
    if (input instanceof ReadableStream) return drain(input);
  }
  throw new ConfigError([
    'There is no recording: give a path, a Buffer or Uint8Array, a Blob, or a stream of bytes.',
  ]);
}

async function* drain(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Files have a name; Node's file streams have a path. */
function nameOf(input: unknown): string {
  const { name, path } = input as { name?: unknown; path?: unknown };
  if (typeof name === 'string' && name !== '') return baseName(name);
  return typeof path === 'string' ? baseName(path) : NAMELESS;
}
