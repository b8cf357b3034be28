import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobInfo, BlobStore, BlobWriter } from './blob-store.ts';

const READ_BYTES = 256 * 1024;
/** Marks what is still being written. */
const UNFINISHED = '.unfinished';
/** Groups are ids of requests and names are our own; anything else is not worth a look at the disk. */
const SAFE_NAME = /^[\w-][\w.-]*$/;

/** Blobs as files: `folder/group/name`. */
export class FileBlobStore implements BlobStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async create(group: string, name: string): Promise<BlobWriter> {
    const path = this.#path(group, name);
    const folder = this.#path(group);
    await makeFolder(this.#folder);
    if (await makeFolder(folder)) await flushFolder(this.#folder);
    return new FileWriter(await open(path + UNFINISHED, 'wx', 0o600), path, folder);
  }

  read(group: string, name: string): AsyncIterable<Uint8Array> {
    return createReadStream(this.#path(group, name), { highWaterMark: READ_BYTES });
  }

  async erase(group: string, name: string): Promise<void> {
    await rm(this.#path(group, name), { force: true });
  }

  async eraseGroup(group: string): Promise<void> {
    // Retries: a part that arrives at this moment may put one more file into the folder.
    await rm(this.#path(group), { recursive: true, force: true, maxRetries: 3, retryDelay: 20 });
  }

  async groups(): Promise<string[]> {
    return (await readdir(this.#folder).catch(noneIfMissing)).filter((name) => SAFE_NAME.test(name));
  }

  async list(group: string): Promise<BlobInfo[]> {
    const names = await readdir(this.#path(group)).catch(noneIfMissing);
    const infos = await Promise.all(
      names.map(async (name) => {
        const file = await stat(join(this.#folder, group, name)).catch(noneIfMissing);
        return 'mtimeMs' in file ? [{ name, modifiedAt: file.mtimeMs }] : [];
      }),
    );
    return infos.flat();
  }

  async checkWritable(): Promise<void> {
    await makeFolder(this.#folder);
    const path = join(this.#folder, `.writable-${randomUUID()}`);
    const file = await open(path, 'wx', 0o600);
    try {
      await file.write('1');
    } finally {
      await file.close();
      await unlink(path);
    }
  }

  #path(...names: string[]): string {
    for (const name of names) {
      if (!SAFE_NAME.test(name)) throw new RangeError('A blob may not have this name');
    }
    return join(this.#folder, ...names);
  }
}

class FileWriter implements BlobWriter {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #folder: string;

  constructor(file: FileHandle, path: string, folder: string) {
    this.#file = file;
    this.#path = path;
    this.#folder = folder;
  }

  async write(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      at += (await this.#file.write(chunk, at)).bytesWritten;
    }
  }

  async finish(): Promise<void> {
    await this.#file.sync();
    await this.#file.close();
    await rename(this.#path + UNFINISHED, this.#path);
    await flushFolder(this.#folder);
  }

  async discard(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await rm(this.#path + UNFINISHED, { force: true });
    await rm(this.#path, { force: true });
  }
}

/** True when it was not there. Step by step: Node's recursive way calls every error a missing folder. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** A new name in a folder survives a power cut only when the folder itself was flushed. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function noneIfMissing(error: NodeJS.ErrnoException): never[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
