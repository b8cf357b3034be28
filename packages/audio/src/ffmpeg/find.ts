import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Path of ffmpeg on the PATH, or null. Not cached: it may be installed while the server runs. */
export async function findFfmpeg(): Promise<string | null> {
  const { PATH = '' } = process.env;
  for (const folder of PATH.split(delimiter).filter((name) => name !== '')) {
    const path = join(folder, process.platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg');
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return null;
}
