import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ASYNCH_LIMITS } from '@undertone/contract';
import { type Patience, receive } from '../../http/receive.ts';
import { ProblemError } from '../../problems.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import type { RequestStore } from '../stores/request-store.ts';
import { requireUploading } from './upload-state.ts';

/** The longest silence, and the longest a whole part may take: 100 MB over a line of one megabit. */
export const PART_PATIENCE: Patience = { idleMs: 30_000, totalMs: 15 * 60_000 };

export interface ReceivedPart {
  /** MD5 in hexadecimal. */
  readonly etag: string;
  readonly bytes: number;
}

/** Takes parts in: straight to their blob, hashed and counted on the way, recorded when they are safe. */
export class PartUpload {
  readonly #requests: RequestStore;
  readonly #blobs: BlobStore;
  readonly #patience: Patience;
  /** Bytes of parts that are arriving now, by request: the limit counts them before they are recorded. */
  readonly #arriving = new Map<string, number>();

  constructor(requests: RequestStore, blobs: BlobStore, patience: Patience) {
    this.#patience = patience;
    this.#requests = requests;
    this.#blobs = blobs;
  }

  async take(
    requestId: string,
    partNumber: number,
    body: IncomingMessage,
    contentMd5: string | undefined,
  ): Promise<ReceivedPart> {
    const expected = contentMd5 === undefined ? null : readContentMd5(contentMd5);
    requireUploading(await this.#requests.find(requestId));
    const blob = `${partNumber}-${randomUUID()}`;
    try {
      const received = await this.#store(requestId, partNumber, blob, body, expected);
      await this.#record(requestId, { number: partNumber, blob, ...received });
      return received;
    } catch (error) {
      // The folder goes away when the request is deleted meanwhile; then that is what happened.
      requireUploading(await this.#requests.find(requestId));
      throw error;
    }
  }

  async #store(
    requestId: string,
    partNumber: number,
    blob: string,
    body: IncomingMessage,
    expected: string | null,
  ): Promise<ReceivedPart> {
    const room = ASYNCH_LIMITS.maxFileBytes - (await this.#requests.bytesBeside(requestId, partNumber));
    const announced = Number(body.headers['content-length'] ?? 0);
    if (announced > room) throw tooLarge();
    const writer = await this.#blobs.create(requestId, blob);
    const hash = createHash('md5');
    let bytes = 0;
    try {
      await receive(body, { ...this.#patience, maxBytes: ASYNCH_LIMITS.maxFileBytes }, (chunk) => {
        bytes += chunk.length;
        if (this.#count(requestId, chunk.length) > room) throw tooLarge();
        hash.update(chunk);
        return writer.write(chunk);
      });
      if (bytes === 0) throw new ProblemError('bad_request', 'A part cannot be empty.');
      const etag = hash.digest('hex');
      if (expected !== null && etag !== expected) {
        throw new ProblemError(
          'bad_request',
          'The part is not what its Content-MD5 says: it was damaged on the way. Send it again.',
        );
      }
      await writer.finish();
      return { etag, bytes };
    } catch (error) {
      await writer.discard();
      throw error;
    } finally {
      this.#count(requestId, -bytes);
    }
  }

  async #record(
    requestId: string,
    part: { number: number; blob: string; etag: string; bytes: number },
  ): Promise<void> {
    const answer = await this.#requests.addPart(requestId, part, {
      maxTotalBytes: ASYNCH_LIMITS.maxFileBytes,
    });
    if (answer.added) {
      if (answer.replaced !== null) await this.#blobs.erase(requestId, answer.replaced);
      return;
    }
    await this.#blobs.erase(requestId, part.blob);
    if (answer.why === 'too_large') throw tooLarge();
    throw new ProblemError('conflict', 'This upload is complete: its parts cannot change any more.');
  }

  #count(requestId: string, bytes: number): number {
    const sum = (this.#arriving.get(requestId) ?? 0) + bytes;
    if (sum > 0) this.#arriving.set(requestId, sum);
    else this.#arriving.delete(requestId);
    return sum;
  }
}

function tooLarge(): ProblemError {
  const max_bytes = ASYNCH_LIMITS.maxFileBytes;
  return new ProblemError('file_too_large', `All parts together may have ${max_bytes} bytes (1 GiB).`, {
    figures: { max_bytes },
  });
}

function readContentMd5(header: string): string {
  const bytes = Buffer.from(header, 'base64');
  if (bytes.length !== 16) {
    throw new ProblemError('bad_request', 'Content-MD5 must be the base64 of the 16 bytes of an MD5.');
  }
  return bytes.toString('hex');
}
