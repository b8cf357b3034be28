import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** A real file system of a few megabytes that a test can fill and make read-only. */
export interface SmallDisk {
  fill(): void;
  empty(): void;
  protect(on: boolean): void;
  unmount(): void;
}

export const MUST_MOUNT =
  'this test mounts a small disk: run it as root, or with `unshare --user --map-root-user --mount`';

/** Null where this process may not mount one. */
export function mountSmallDisk(folder: string, megabytes = 2): SmallDisk | null {
  const mount = (...args: string[]) => execFileSync('mount', args, { stdio: 'pipe' });
  try {
    mount('-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', folder);
  } catch {
    return null;
  }
  const ballast = join(folder, 'ballast');
  return {
    fill: () => {
      for (const size of [1 << 20, 64 << 10, 4 << 10]) while (append(ballast, size));
    },
    empty: () => rmSync(ballast),
    protect: (on) => mount('-o', `remount,bind,${on ? 'ro' : 'rw'}`, folder),
    unmount: () => execFileSync('umount', ['-l', folder]),
  };
}

/** False when the disk is full. */
function append(path: string, bytes: number): boolean {
  try {
    appendFileSync(path, Buffer.alloc(bytes));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
