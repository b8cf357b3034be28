import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Where the machine's ffmpeg is, or null. Looked for each time: it may be installed meanwhile. */
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
