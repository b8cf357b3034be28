import { randomUUID } from 'node:crypto';
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
import { incoming, isSafeName, orAborted, requireSafeNames } from '../blob-bytes.ts';
import type {
  ArrivedPart,
  BlobInfo,
  BlobStore,
  PartUrl,
  ReadOptions,
  UploadTarget,
  WriteOptions,
  WrittenBlob,
} from '../blob-store.ts';
import { ANSWER_MS, StoreUnavailableError } from '../unavailable.ts';
import { asUnavailable } from './errors.ts';
import { s3PutSigner } from './presign.ts';
import { S3Writer } from './writer.ts';

/** Only small calls are answered within a second: bytes may take as long as they keep coming. */
const IDLE_MS = 10_000;
/** A read that breaks off goes on where it stopped, unless it breaks off so often without bringing anything. */
const READ_TRIES = 4;
const READ_PAUSE_MS = 200;
/** Such an URL cannot be revoked, so it does not live long. */
const URL_SECONDS = 60 * 60;
const SIGNED_AT_ONCE = 500;
const CHUNKS_AT_ONCE = 64;
/** S3 lists and erases no more in one call. */
const PAGE_SIZE = 1_000;

export interface S3Options {
  readonly bucket: string;
  /** Before every key: `PREFIXgroup/name`. Everything under it belongs to this installation. */
  readonly prefix: string;
  readonly region: string;
  /** Empty: that of AWS. */
  readonly endpoint: string;
  /** What senders reach it under, when that is another. */
  readonly publicEndpoint: string;
  /** `auto`: virtual hosts at AWS, paths elsewhere. */
  readonly addressing: 'auto' | 'path' | 'virtual';
  readonly now?: (() => number) | undefined;
  /** Longer in tests that are not about it. */
  readonly answerMs?: number | undefined;
  /** Objects in one call; fewer in tests. */
  readonly pageSize?: number;
}

/** Blobs as objects in S3. Senders put parts straight into it: the object of a part is named by its number. */
export class S3BlobStore implements BlobStore {
  readonly uploadOrigin: string;
  readonly #client: S3Client;
  readonly #options: S3Options;
  readonly #pageSize: number;
  readonly #answerMs: number;

  constructor(options: S3Options) {
    this.#options = options;
    this.uploadOrigin = publicUrl(options, '').origin;
    this.#pageSize = options.pageSize ?? PAGE_SIZE;
    this.#answerMs = options.answerMs ?? ANSWER_MS;
    this.#client = new S3Client({
      region: options.region,
      ...(options.endpoint !== '' && { endpoint: options.endpoint }),
      forcePathStyle: usesPaths(options),
      maxAttempts: 2,
      requestHandler: { connectionTimeout: this.#answerMs, socketTimeout: IDLE_MS },
      // Not every S3 knows the newer checksums.
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
      if (urls.length % SIGNED_AT_ONCE === 0) await nextTurn();
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
        // Most chunks only wait in memory: a fast source of small ones would hold up the event loop.
        if (++chunks % CHUNKS_AT_ONCE === 0) await nextTurn();
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
        // There is nothing from here on.
        if ((error as Error).name === 'InvalidRange') return;
        const known = asUnavailable(error);
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
      const { Errors = [] } = await this.#guard(() => this.#client.send(command, within(IDLE_MS)));
      if (Errors[0]) throw new StoreUnavailableError(`its object store did not erase all: ${Errors[0].Code}`);
    }
  }

  async groups(): Promise<string[]> {
    const { prefix } = this.#options;
    const found = new Set<string>();
    // Objects, not common prefixes: some stores show the empty folders that they left.
    for await (const { Contents = [] } of this.#pages(prefix)) {
      for (const { Key = '' } of Contents) {
        const [group = '', name] = Key.slice(prefix.length).split('/');
        if (name !== undefined && isSafeName(group)) found.add(group);
      }
    }
    return [...found];
  }

  async list(group: string): Promise<BlobInfo[]> {
    return (await this.#objects(group)).map(({ name, object }) => ({
      name,
      modifiedAt: object.LastModified?.getTime() ?? 0,
    }));
  }

  async checkWritable(): Promise<void> {
    const where = { Bucket: this.#options.bucket, Key: `${this.#options.prefix}.writable-${randomUUID()}` };
    await this.#guard(async () => {
      await this.#client.send(new PutObjectCommand({ ...where, Body: '1' }), within(this.#answerMs));
      await this.#client.send(new DeleteObjectCommand(where), within(this.#answerMs));
    });
  }

  close(): void {
    this.#client.destroy();
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
      const page = await this.#guard(() => this.#client.send(command, within(this.#answerMs)));
      yield page;
      token = page.NextContinuationToken;
    } while (token !== undefined && token !== '');
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asUnavailable(error);
    }
  }
}

function within(ms: number): { abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(ms) };
}

function usesPaths({ addressing, endpoint }: S3Options): boolean {
  return addressing === 'auto' ? endpoint !== '' : addressing === 'path';
}

/** Where senders reach an object. Keys have no characters that would have to be escaped. */
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

/** Otherwise as S3 spells it: reading asks for the very same again. */
function unquoted(etag: string): string {
  return etag.replaceAll('"', '');
}
