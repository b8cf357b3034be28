import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  type BlobInfo,
  type BlobStore,
  incoming,
  isSafeName,
  type PartUrl,
  type ReadOptions,
  requireSafeNames,
  type UploadTarget,
  type WriteOptions,
  type WrittenBlob,
} from '../blobs.ts';
import { fromDisk } from '../errors.ts';
import type { Secrets } from '../signing.ts';

const READ_BYTES = 256 * 1024;
const GROUPS_PER_PAGE = 500;
/** Suffix of a blob that is still being written. */
const UNFINISHED = '.unfinished';

/** Blobs as files: `folder/group/name`. */
export class FileBlobStore implements BlobStore {
  readonly #folder: string;
  readonly #secrets: Secrets;

  constructor(folder: string, secrets: Secrets) {
    this.#folder = folder;
    this.#secrets = secrets;
  }

  uploadUrls(request: UploadTarget, partNumbers: readonly number[]): Promise<PartUrl[]> {
    return this.#secrets.urls(request, partNumbers);
  }

  write(
    group: string,
    name: string,
    bytes: AsyncIterable<Uint8Array>,
    options: WriteOptions = {},
  ): Promise<WrittenBlob> {
    return this.#guard(async () => {
      const path = this.#path(group, name);
      const folder = this.#path(group);
      await this.#makeRoot();
      if (await makeFolder(folder)) await flush(this.#folder);
      const file = await open(path + UNFINISHED, 'wx', 0o600);
      try {
        const written = await writeAll(file, bytes, options);
        await file.sync();
        await file.close();
        await rename(path + UNFINISHED, path);
        await flush(folder);
        return written;
      } catch (error) {
        await file.close().catch(() => undefined);
        for (const left of [path + UNFINISHED, path]) await rm(left, { force: true });
        throw error;
      }
    });
  }

  async *read(
    group: string,
    name: string,
    { start = 0, end = Number.POSITIVE_INFINITY }: ReadOptions = {},
  ): AsyncGenerator<Uint8Array> {
    if (end <= start) return;
    try {
      // Its `end` is inclusive.
      yield* createReadStream(this.#path(group, name), { highWaterMark: READ_BYTES, start, end: end - 1 });
    } catch (error) {
      throw fromDisk(error);
    }
  }

  erase(group: string, name: string): Promise<void> {
    return this.#guard(() => rm(this.#path(group, name), { force: true }));
  }

  eraseGroup(group: string): Promise<void> {
    // Retries: a part that is arriving may add another file to the folder.
    const options = { recursive: true, force: true, maxRetries: 3, retryDelay: 20 };
    return this.#guard(() => rm(this.#path(group), options));
  }

  groups(): Promise<string[]> {
    return this.#guard(async () => (await namesIn(this.#folder)).filter(isSafeName));
  }

  async *groupPages(): AsyncGenerator<string[]> {
    const groups = await this.groups();
    for (let at = 0; at < groups.length; at += GROUPS_PER_PAGE) yield groups.slice(at, at + GROUPS_PER_PAGE);
  }

  list(group: string): Promise<BlobInfo[]> {
    return this.#guard(async () => {
      const infos: BlobInfo[] = [];
      for (const name of await namesIn(this.#path(group))) {
        const file = await stat(join(this.#folder, group, name)).catch(ignoreMissing);
        if (file !== undefined) infos.push({ name, modifiedAt: file.mtimeMs });
      }
      return infos;
    });
  }

  checkWritable(): Promise<void> {
    return this.#guard(async () => {
      await this.#makeRoot();
      const path = join(this.#folder, '.writable');
      try {
        const file = await open(path, 'w', 0o600);
        await file.write('1').finally(() => file.close());
      } finally {
        await rm(path, { force: true });
      }
    });
  }

  async #makeRoot(): Promise<void> {
    // With PostgreSQL the data folder may not exist yet.
    await makeFolder(dirname(this.#folder));
    await makeFolder(this.#folder);
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw fromDisk(error);
    }
  }

  #path(...names: string[]): string {
    requireSafeNames(...names);
    return join(this.#folder, ...names);
  }
}

async function writeAll(
  file: FileHandle,
  bytes: AsyncIterable<Uint8Array>,
  options: WriteOptions,
): Promise<WrittenBlob> {
  const hash = createHash('md5');
  let written = 0;
  for await (const chunk of incoming(bytes, options)) {
    hash.update(chunk);
    for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
    written += chunk.length;
  }
  return { bytes: written, etag: hash.digest('hex') };
}

/** True if it is new. Not recursive: there Node reports every error as a missing folder. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** A new name survives a power cut only once its folder is flushed. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(ignoreMissing)) ?? [];
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
