import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { fromS3 } from '../errors.ts';

/** S3's minimum. Each object that is being written holds this much in memory. */
export const PIECE_BYTES = 5 * 1024 * 1024;

/**
 * Writes one object of unknown length, buffering one piece at a time. S3 calls that a multipart upload; its pieces are not the
 * parts that our clients send. The object appears when `end` resolves, or never.
 * By hand: `Upload` in @aws-sdk/lib-storage rejects an aborted upload before its pieces are deleted.
 */
export class S3Writer {
  readonly #client: S3Client;
  readonly #where: { readonly Bucket: string; readonly Key: string };
  readonly #etags: string[] = [];
  #buffered: Uint8Array[] = [];
  #bufferedBytes = 0;
  #uploadId: string | undefined;

  constructor(client: S3Client, where: { readonly Bucket: string; readonly Key: string }) {
    this.#client = client;
    this.#where = where;
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#buffered.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#bufferedBytes >= PIECE_BYTES) await guard(() => this.#sendPiece());
  }

  /** Returns the ETag of the object. */
  end(): Promise<string> {
    return guard(async () => {
      if (this.#uploadId === undefined) {
        const command = new PutObjectCommand({ ...this.#where, Body: this.#take() });
        return (await this.#client.send(command)).ETag ?? '';
      }
      if (this.#bufferedBytes > 0) await this.#sendPiece();
      const command = new CompleteMultipartUploadCommand({
        ...this.#where,
        UploadId: this.#uploadId,
        MultipartUpload: { Parts: this.#etags.map((ETag, i) => ({ ETag, PartNumber: i + 1 })) },
      });
      return (await this.#client.send(command)).ETag ?? '';
    });
  }

  /** If this fails, the bucket's lifecycle rule removes the pieces. */
  async abort(): Promise<void> {
    if (this.#uploadId === undefined) return;
    const command = new AbortMultipartUploadCommand({ ...this.#where, UploadId: this.#uploadId });
    await this.#client.send(command).catch(() => undefined);
  }

  async #sendPiece(): Promise<void> {
    this.#uploadId ??= (await this.#client.send(new CreateMultipartUploadCommand(this.#where))).UploadId;
    const PartNumber = this.#etags.length + 1;
    const part = { ...this.#where, UploadId: this.#uploadId, PartNumber, Body: this.#take() };
    this.#etags.push((await this.#client.send(new UploadPartCommand(part))).ETag ?? '');
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#buffered);
    this.#buffered = [];
    this.#bufferedBytes = 0;
    return bytes;
  }
}

async function guard<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw fromS3(error);
  }
}
