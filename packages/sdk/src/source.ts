import { ASYNCH_LIMITS } from '@undertone/contract';
import { itemsOf, untilAborted } from './abort.ts';
import { ConfigError, RequestFailedError } from './errors.ts';
import type { AudioSource, Platform } from './platform/platform.ts';
import type { AudioInput } from './types.ts';

/** The file name of a recording without one. */
const DEFAULT_NAME = 'recording';

/** Recordings are read in pieces: large enough to be fast, small enough to save memory. */
const PIECE_BYTES = 256 * 1024;

/** Enough for three parts of the default size; the garbage collector frees the rest. */
const POOLED_PIECES = (16 * 1024 * 1024) / PIECE_BYTES;

/** Converts any input to a recording of known length. The caller closes it. */
export async function openSource(
  platform: Platform,
  input: AudioInput,
  signal: AbortSignal | undefined,
): Promise<AudioSource> {
  if (typeof input === 'string' || input instanceof URL) return platform.openPath(input, signal);
  if (input instanceof Blob) return blobSource(input, nameOf(input));
  const bytes = asBytes(input);
  if (bytes) return bytesSource(bytes, DEFAULT_NAME);
  return platform.spool(limited(chunksOf(input, signal), ASYNCH_LIMITS.maxFileBytes), nameOf(input));
}

/** Reads an input of at most `maxBytes` into one Blob. */
export async function readWhole(
  platform: Platform,
  input: AudioInput,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<{ blob: Blob; name: string }> {
  if (isStream(input)) {
    return { blob: await collect(limited(chunksOf(input, signal), maxBytes)), name: nameOf(input) };
  }
  const source = await openSource(platform, input, signal);
  try {
    if (source.size > maxBytes) throw tooLarge(maxBytes);
    const blob =
      input instanceof Blob ? input : await untilAborted(collect(source.read(0, source.size)), signal);
    return { blob, name: source.name };
  } finally {
    await source.close();
  }
}

/** A Blob or File, read piece by piece from where the browser stores it. */
export function blobSource(blob: Blob, name: string): AudioSource {
  return memorySource(name, blob.size, async (start, end) => {
    let cause: unknown;
    try {
      const piece = new Uint8Array(await blob.slice(start, end).arrayBuffer());
      if (piece.length === end - start) return piece;
    } catch (error) {
      cause = error;
    }
    throw fileChanged('changed', cause);
  });
}

/** A recording in memory. The bytes are not copied: do not change them before the end. */
function bytesSource(bytes: Uint8Array, name: string): AudioSource {
  return memorySource(name, bytes.length, async (start, end) => bytes.subarray(start, end));
}

function memorySource(
  name: string,
  size: number,
  piece: (start: number, end: number) => Promise<Uint8Array>,
): AudioSource {
  return {
    name,
    size,
    async *read(start, end) {
      for (let at = start; at < end; at += PIECE_BYTES)
        yield await piece(at, Math.min(at + PIECE_BYTES, end));
    },
    verify: async () => {},
    close: async () => {},
  };
}

/**
 * Reuses the memory of acknowledged parts. The garbage collector would let tens of megabytes pile up before it frees
 * them.
 */
export class PiecePool {
  readonly #free: Uint8Array[] = [];

  allocate(): Uint8Array {
    return this.#free.pop() ?? newPiece();
  }

  /** Only for pieces of an acknowledged part: `fetch` no longer reads from them. */
  release(pieces: readonly Uint8Array[]): void {
    this.#free.push(...pieces.slice(0, POOLED_PIECES - this.#free.length));
  }
}

export function newPiece(): Uint8Array {
  return new Uint8Array(PIECE_BYTES);
}

/** The last part of a path or URL, cut to the maximum length of a file name. */
export function baseName(path: string): string {
  const last = path.split(/[\\/]/).filter(Boolean).at(-1) ?? DEFAULT_NAME;
  return [...last].slice(0, ASYNCH_LIMITS.maxFileNameLength).join('');
}

export function tooLarge(maxBytes: number): RequestFailedError {
  const mebibytes = maxBytes / 1024 ** 2;
  const limit = mebibytes < 1024 ? `${mebibytes} MiB` : `${mebibytes / 1024} GiB`;
  return new RequestFailedError(`The recording is larger than ${limit}, the limit here.`, {
    code: 'file_too_large',
  });
}

export function fileChanged(how: string, cause?: unknown): RequestFailedError {
  return new RequestFailedError(
    `The file ${how} while it was being read. Try again when no program writes to it.`,
    { code: 'file_changed', cause },
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
      throw new ConfigError([
        'The stream yields text or objects: pass a stream of bytes without an encoding.',
      ]);
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

function chunksOf(input: unknown, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
  const isIterable =
    typeof input === 'object' && input !== null && (Symbol.asyncIterator in input || 'getReader' in input);
  if (isIterable) return itemsOf(input as Stream, signal);
  throw new ConfigError([
    'Unsupported input: pass a path, a Buffer or Uint8Array, a Blob, or a stream of bytes.',
  ]);
}

/** Files have a name, Node's file streams have a path. */
function nameOf(input: unknown): string {
  const { name, path } = input as { name?: unknown; path?: unknown };
  if (typeof name === 'string' && name !== '') return baseName(name);
  return typeof path === 'string' ? baseName(path) : DEFAULT_NAME;
}
