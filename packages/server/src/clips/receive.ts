import type { IncomingMessage } from 'node:http';
import type { Clip } from '@undertone/classifier';
import { DISCRETE_LIMITS } from '@undertone/contract';
import { announcedBytes, type BodyTimeouts, bodyTooLarge, receiveBody } from '../http/body.ts';
import { receiveFormFile } from '../http/form-file.ts';
import { ProblemError } from '../problems.ts';
import type { Reservation } from './admission.ts';

export interface ClipBody {
  readonly kind: Clip['kind'];
  /** Undefined for a chunked body. */
  readonly announced: number | undefined;
  readonly maxBytes: number;
}

interface ReceiveOptions {
  readonly timeouts: BodyTimeouts;
  readonly reservation: Reservation;
  readonly signal: AbortSignal;
}

/** Allowance for the boundaries, headers and other parts of a form. */
const FORM_OVERHEAD_BYTES = 64 * 1024;
const MAX_BYTES = {
  file: DISCRETE_LIMITS.maxFileBytes + FORM_OVERHEAD_BYTES,
  json: DISCRETE_LIMITS.maxJsonBytes,
};
const KINDS: Record<string, Clip['kind']> = {
  'multipart/form-data': 'file',
  'application/json': 'json',
};

const FORMS =
  'Send the recording as the part named file of a multipart/form-data body (`curl -F file=@voice.wav`), or prepared samples as application/json.';

/** Kind and size limit of the body, from its headers: an unsuitable body is refused before it is read. */
export function clipBody(request: IncomingMessage): ClipBody {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  const kind = KINDS[type.split(';', 1)[0]?.trim().toLowerCase() ?? ''];
  if (kind === undefined) throw new ProblemError('unsupported_media_type', FORMS);
  if (encoding !== 'identity') {
    throw new ProblemError('unsupported_media_type', 'Send the body as it is, without content-encoding.');
  }
  const announced = announcedBytes(request);
  const maxBytes = MAX_BYTES[kind];
  if ((announced ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
  return { kind, announced, maxBytes };
}

/** Receives the body into memory, unparsed. Nothing is written to disk. */
export async function receiveClip(
  request: IncomingMessage,
  { kind, announced = 0, maxBytes }: ClipBody,
  { timeouts, reservation, signal }: ReceiveOptions,
): Promise<Clip> {
  const bytes = new GrowingBuffer(announced, maxBytes, reservation);
  const limits = { ...timeouts, maxBytes };
  const onChunk = (chunk: Uint8Array) => bytes.push(chunk);
  try {
    if (kind === 'file') await receiveFormFile(request, limits, onChunk, signal);
    else await receiveBody(request, limits, onChunk, signal);
    reservation.arrived();
  } catch (error) {
    // The reservation ends now, so the memory must be released now too, not at the next garbage collection.
    bytes.free();
    throw error;
  }
  return { kind, bytes: bytes.take() };
}

/** Collects chunks in one buffer that never moves, so that a body is in memory only once. */
class GrowingBuffer {
  readonly #reservation: Reservation;
  #buffer: ArrayBuffer;
  #length = 0;

  constructor(announced: number, maxBytes: number, reservation: Reservation) {
    // A body of unknown length grows in place, page by page. Copying into larger buffers would need twice the memory.
    this.#buffer =
      announced > 0 ? new ArrayBuffer(announced) : new ArrayBuffer(0, { maxByteLength: maxBytes });
    this.#reservation = reservation;
  }

  push(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (length > this.#buffer.byteLength) {
      this.#reservation.grow(length);
      this.#buffer.resize(length);
    }
    new Uint8Array(this.#buffer).set(chunk, this.#length);
    this.#length = length;
  }

  take(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer.transferToFixedLength(), 0, this.#length);
  }

  free(): void {
    this.#buffer.transfer(0);
  }
}
