import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BlobStore, BlobWriter } from '../../../src/asynch/stores/blob-store.ts';

const run = promisify(execFile);

/** Ways to take a disk away and give it back. */
export interface Disk {
  fill(): Promise<void>;
  empty(): Promise<void>;
  protect(): Promise<void>;
  unprotect(): Promise<void>;
  release(): Promise<void>;
}

/**
 * A small disk of its own under `folder` where this process may mount one; otherwise the same errors, raised where
 * the blob store speaks to the disk.
 */
export async function smallDisk(folder: string, blobs: BlobStore): Promise<Disk> {
  const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]).then(
    () => true,
    () => false,
  );
  return mounted ? mountedDisk(folder) : injectedErrors(blobs);
}

function mountedDisk(folder: string): Disk {
  const ballast = join(folder, '.ballast');
  const remount = (mode: string) => run('mount', ['-o', `remount,${mode}`, folder]);
  return {
    fill: async () => {
      const full = /ENOSPC/;
      const block = Buffer.alloc(64 * 1024);
      for (let blocks = 1; ; blocks++) {
        try {
          await writeFile(ballast, block, { flag: 'a' });
        } catch (error) {
          if (full.test(String(error))) return;
          throw error;
        }
        if (blocks > 1_000) throw new Error('this disk does not fill');
      }
    },
    empty: () => rm(ballast),
    protect: async () => void (await remount('ro')),
    unprotect: async () => void (await remount('rw')),
    release: async () => {
      const mounts = await readFile('/proc/mounts', 'utf8');
      if (mounts.includes(` ${folder} `)) await run('umount', ['-l', folder]);
    },
  };
}

function injectedErrors(blobs: BlobStore): Disk {
  const create = blobs.create.bind(blobs);
  const refuse = (code: string) => async () => {
    throw Object.assign(new Error(code), { code });
  };
  const restore = async () => {
    blobs.create = create;
  };
  return {
    fill: async () => {
      blobs.create = async (group, name) => {
        const writer: BlobWriter = await create(group, name);
        writer.write = refuse('ENOSPC');
        return writer;
      };
      blobs.checkWritable = refuse('ENOSPC');
    },
    empty: restore,
    protect: async () => {
      blobs.create = refuse('EROFS');
    },
    unprotect: restore,
    release: restore,
  };
}
