import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ASYNCH_LIMITS } from '@undertone/contract';

/**
 * Request IDs of uploads, kept on this machine for `--resume` until the server deletes the request. A record is named by a
 * checksum of the file, the server and the options, so it does not reveal the file.
 */
export class UploadRecords {
  readonly #folder: string;

  constructor(folder = defaultFolder()) {
    this.#folder = folder;
  }

  /** The request ID of an earlier upload, if there is one. */
  async find(name: string): Promise<string | undefined> {
    return readFile(join(this.#folder, name), 'utf8').catch(() => undefined);
  }

  async keep(name: string, requestId: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#folder, name), requestId, { mode: 0o600 });
    await this.#removeExpired();
  }

  async #removeExpired(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
      if (Date.now() - mtimeMs > ASYNCH_LIMITS.retentionSeconds * 1000) await rm(path, { force: true });
    }
  }
}

/** The record name of a file that is uploaded with these settings. */
export async function recordName(file: string, settings: readonly unknown[]): Promise<string> {
  const checksum = createHash('sha256');
  await pipeline(createReadStream(file), checksum);
  return createHash('sha256')
    .update(JSON.stringify([checksum.digest('hex'), ...settings]))
    .digest('hex');
}

function defaultFolder(): string {
  const { XDG_STATE_HOME } = process.env;
  return join(XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'undertone', 'uploads');
}
