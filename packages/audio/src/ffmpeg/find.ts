import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Path of ffmpeg on the PATH, or null. Not cached: it may be installed while the server runs. */
export function findFfmpeg(): Promise<string | null> {
  return findProgram(process.platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg');
}

/** Path of a program on the PATH, or null. */
export async function findProgram(name: string): Promise<string | null> {
  const { PATH = '' } = process.env;
  for (const folder of PATH.split(delimiter).filter((entry) => entry !== '')) {
    const path = join(folder, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return null;
}
