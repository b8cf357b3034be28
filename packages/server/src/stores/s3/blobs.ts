import type { Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import {
  type _Object,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  type ArrivedPart,
  type BlobInfo,
  type BlobStore,
  incoming,
  isSafeName,
  orAborted,
  type PartUrl,
  type ReadOptions,
  requireSafeNames,
  UPLOAD_URL_MS,
  type UploadTarget,
  type WriteOptions,
  type WrittenBlob,
} from '../blobs.ts';
import { type Budgets, budgetOf } from '../budgets.ts';
import { fromS3, StoreUnavailableError } from '../errors.ts';
import { nextSlice } from '../slices.ts';
import { s3PutSigner } from './presign.ts';
import { PIECE_BYTES, S3Writer } from './writer.ts';

/** Only small calls have to be answered within a second; transfers time out when no byte arrives. */
const IDLE_MS = 10_000;
/** An interrupted read resumes where it stopped. It fails after this many attempts without any data. */
const READ_TRIES = 4;
const READ_PAUSE_MS = 200;
const URL_SECONDS = UPLOAD_URL_MS / 1000;
const SIGNED_PER_SLICE = 500;
const CHUNKS_PER_TURN = 64;
/** S3's maximum for listing and deleting. */
const PAGE_SIZE = 1_000;

export interface S3Options extends Budgets {
  readonly bucket: string;
  /** Keys are `PREFIXgroup/name`. Everything under the prefix belongs to this installation. */
  readonly prefix: string;
  readonly region: string;
  /** Empty: AWS. */
  readonly endpoint: string;
  /** The address clients upload to, if different. */
  readonly publicEndpoint: string;
  /** `auto`: virtual hosts at AWS, paths elsewhere. */
  readonly addressing: 'auto' | 'path' | 'virtual';
  readonly now?: (() => number) | undefined;
  /** Smaller in tests. */
  readonly pageSize?: number;
}

/** Blobs as objects in S3. Clients upload parts straight to it; a part's object is named by its number. */
export class S3BlobStore implements BlobStore {
  readonly uploadOrigin: string;
  readonly bufferBytes = PIECE_BYTES;
  readonly #client: S3Client;
  /** For lists, where the first byte may take long. */
  readonly #lister: S3Client;
  readonly #options: S3Options;
  readonly #pageSize: number;
  readonly #answerMs: number;
  readonly #longMs: number;

  constructor(options: S3Options) {
    this.#options = options;
    this.uploadOrigin = publicUrl(options, '').origin;
    this.#pageSize = options.pageSize ?? PAGE_SIZE;
    this.#answerMs = budgetOf('answer', options);
    this.#longMs = budgetOf('long', options);
    this.#client = this.#connect(IDLE_MS);
    this.#lister = this.#connect(this.#longMs);
  }

  #connect(socketTimeout: number): S3Client {
    const options = this.#options;
    return new S3Client({
      region: options.region,
      ...(options.endpoint !== '' && { endpoint: options.endpoint }),
      forcePathStyle: usesPaths(options),
      maxAttempts: 2,
      requestHandler: { connectionTimeout: this.#answerMs, socketTimeout },
      // Not every S3 supports the newer checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  }

  async uploadUrls(request: UploadTarget, partNumbers: readonly number[]): Promise<PartUrl[]> {
    const now = this.#options.now?.() ?? Date.now();
    const left = Math.floor((request.expiresAt - now) / 1000);
    const expiresInSeconds = Math.max(1, Math.min(URL_SECONDS, left));
    const credentials = await this.#guard(() => this.#client.config.credentials());
    const sign = s3PutSigner({ credentials, region: this.#options.region, now, expiresInSeconds });
    const expires_at = new Date(now + expiresInSeconds * 1000).toISOString();
    const urls: PartUrl[] = [];
    for (const part_number of partNumbers) {
      const url = sign(publicUrl(this.#options, this.#key(request.id, String(part_number))));
      urls.push({ part_number, url, expires_at });
      if (urls.length % SIGNED_PER_SLICE === 0) await nextSlice();
    }
    return urls;
  }

  async arrived(group: string): Promise<ArrivedPart[]> {
    return (await this.#objects(group))
      .filter(({ name }) => /^[1-9]\d*$/.test(name))
      .map(({ name, object: { ETag = '', Size = 0 } }) => ({
        number: Number(name),
        blob: name,
        etag: unquoted(ETag),
        bytes: Size,
      }));
  }

  async write(
    group: string,
    name: string,
    bytes: AsyncIterable<Uint8Array>,
    options: WriteOptions = {},
  ): Promise<WrittenBlob> {
    const Key = this.#key(group, name);
    const where = { Bucket: this.#options.bucket, Key };
    const writer = new S3Writer(this.#client, where);
    let count = 0;
    let chunks = 0;
    try {
      for await (const chunk of incoming(bytes, options)) {
        count += chunk.length;
        await orAborted(writer.write(chunk), options.signal);
        // Most chunks are only buffered: a fast source of small ones would block the event loop.
        if (++chunks % CHUNKS_PER_TURN === 0) await nextTurn();
      }
      return { bytes: count, etag: unquoted(await orAborted(writer.end(), options.signal)) };
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }

  async *read(
    group: string,
    name: string,
    { start = 0, end = Number.POSITIVE_INFINITY, etag }: ReadOptions = {},
  ): AsyncGenerator<Uint8Array> {
    const where = { Bucket: this.#options.bucket, Key: this.#key(group, name) };
    let at = start;
    for (let tries = 1; at < end; tries++) {
      const command = new GetObjectCommand({
        ...where,
        Range: `bytes=${at}-${end === Number.POSITIVE_INFINITY ? '' : end - 1}`,
        ...(etag !== undefined && { IfMatch: `"${etag}"` }),
      });
      try {
        const { Body } = await this.#client.send(command);
        for await (const chunk of Body as Readable) {
          at += chunk.length;
          tries = 1;
          yield chunk;
        }
        return;
      } catch (error) {
        // Past the end.
        if ((error as Error).name === 'InvalidRange') return;
        const known = fromS3(error);
        if (!(known instanceof StoreUnavailableError) || tries >= READ_TRIES) throw known;
      }
      await sleep(READ_PAUSE_MS);
    }
  }

  async erase(group: string, name: string): Promise<void> {
    const where = { Bucket: this.#options.bucket, Key: this.#key(group, name) };
    await this.#guard(() => this.#client.send(new DeleteObjectCommand(where), within(this.#answerMs)));
  }

  async eraseGroup(group: string): Promise<void> {
    const names = (await this.#objects(group)).map(({ name }) => name);
    for (let at = 0; at < names.length; at += this.#pageSize) {
      const Objects = names.slice(at, at + this.#pageSize).map((name) => ({ Key: this.#key(group, name) }));
      const command = new DeleteObjectsCommand({
        Bucket: this.#options.bucket,
        Delete: { Objects, Quiet: true },
      });
      const { Errors = [] } = await this.#guard(() => this.#client.send(command, within(this.#longMs)));
      if (Errors[0])
        throw new StoreUnavailableError(`its object store did not delete everything: ${Errors[0].Code}`);
    }
  }

  async groups(): Promise<string[]> {
    const found = new Set<string>();
    for await (const page of this.groupPages()) for (const group of page) found.add(group);
    return [...found];
  }

  async *groupPages(): AsyncGenerator<string[]> {
    const { prefix } = this.#options;
    // Objects, not common prefixes: some stores still list empty folders.
    for await (const { Contents = [] } of this.#pages(prefix)) {
      const keys = Contents.map(({ Key = '' }) => Key.slice(prefix.length).split('/'));
      const groups = keys.map(([group = '', name]) => (name === undefined ? '' : group));
      yield [...new Set(groups)].filter(isSafeName);
    }
  }

  async list(group: string): Promise<BlobInfo[]> {
    return (await this.#objects(group)).map(({ name, object }) => ({
      name,
      modifiedAt: object.LastModified?.getTime() ?? 0,
    }));
  }

  async checkWritable(): Promise<void> {
    // One name for all processes: what a fault leaves behind is removed by the next check, whoever runs it.
    const where = { Bucket: this.#options.bucket, Key: `${this.#options.prefix}.writable` };
    const put = new PutObjectCommand({ ...where, Body: '1' });
    // Also after a PUT without an answer, which may have been stored.
    const erase = () => this.#client.send(new DeleteObjectCommand(where), within(this.#answerMs));
    await this.#guard(async () => {
      await this.#client.send(put, within(this.#answerMs)).catch(async (error: unknown) => {
        erase().catch(() => undefined);
        throw error;
      });
      await erase();
    });
  }

  close(): void {
    this.#client.destroy();
    this.#lister.destroy();
  }

  #key(group: string, name: string): string {
    requireSafeNames(group, name);
    return `${this.#options.prefix}${group}/${name}`;
  }

  async #objects(group: string): Promise<{ name: string; object: _Object }[]> {
    requireSafeNames(group);
    const prefix = `${this.#options.prefix}${group}/`;
    const found: { name: string; object: _Object }[] = [];
    for await (const { Contents = [] } of this.#pages(prefix)) {
      for (const object of Contents) found.push({ name: object.Key?.slice(prefix.length) ?? '', object });
    }
    return found.filter(({ name }) => isSafeName(name));
  }

  async *#pages(prefix: string): AsyncGenerator<ListObjectsV2CommandOutput> {
    let token: string | undefined;
    do {
      const command = new ListObjectsV2Command({
        Bucket: this.#options.bucket,
        Prefix: prefix,
        MaxKeys: this.#pageSize,
        ContinuationToken: token,
      });
      // Each page has its own budget, so that any number of them can be listed.
      const page = await this.#guard(() => this.#lister.send(command, within(this.#longMs)));
      yield page;
      token = page.NextContinuationToken;
    } while (token !== undefined && token !== '');
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw fromS3(error);
    }
  }
}

function within(ms: number): { abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(ms) };
}

function usesPaths({ addressing, endpoint }: S3Options): boolean {
  return addressing === 'auto' ? endpoint !== '' : addressing === 'path';
}

/** The address clients upload an object to. Keys need no escaping. */
function publicUrl(options: S3Options, key: string): URL {
  const { bucket, region, endpoint, publicEndpoint } = options;
  const url = new URL(publicEndpoint || endpoint || `https://s3.${region}.amazonaws.com`);
  const base = url.pathname.replace(/\/$/, '');
  if (usesPaths(options)) url.pathname = `${base}/${bucket}/${key}`;
  else {
    url.hostname = `${bucket}.${url.hostname}`;
    url.pathname = `${base}/${key}`;
  }
  return url;
}

/** Otherwise unchanged: reads send it back as If-Match. */
function unquoted(etag: string): string {
  return etag.replaceAll('"', '');
}
