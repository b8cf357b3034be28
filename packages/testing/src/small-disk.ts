import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** A real disk of a few megabytes that a test can fill and write-protect. */
export interface SmallDisk {
  fill(): void;
  empty(): void;
  protect(on: boolean): void;
  unmount(): void;
}

/** Null where this process may not mount one. */
export function mountSmallDisk(folder: string): SmallDisk | null {
  const mount = (...args: string[]) => execFileSync('mount', args, { stdio: 'pipe' });
  try {
    mount('-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder);
  } catch {
    return null;
  }
  const ballast = join(folder, 'ballast');
  return {
    fill: () => {
      for (;;) {
        try {
          appendFileSync(ballast, Buffer.alloc(4096));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return;
          throw error;
        }
      }
    },
    empty: () => rmSync(ballast),
    protect: (on) => mount('-o', `remount,${on ? 'ro' : 'rw'}`, folder),
    unmount: () => execFileSync('umount', ['-l', folder]),
  };
}
