import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from './user-error.ts';

/** What recorders, phones, browsers and call centres write. A file named on the command line may be anything. */
const RECORDINGS = /\.(wav|wave|mp3|m4a|mp4|aac|flac|ogg|oga|opus|webm|wma|aif|aiff|amr|3gp|caf)$/i;

export interface Found {
  readonly files: readonly string[];
  /** Whether folders were named: then the files are many, and one bar and a summary tell more than each of them. */
  readonly isFolder: boolean;
}

/** The files that were named, and all recordings in the folders that were named, in the order of their names. */
export async function findRecordings(paths: readonly string[]): Promise<Found> {
  const files: string[] = [];
  let isFolder = false;
  for (const path of paths) {
    if (path === '-' || !(await isDirectory(path))) {
      files.push(path);
      continue;
    }
    isFolder = true;
    const found = await recordingsIn(path);
    if (found.length === 0) throw new UserError(`There are no recordings in the folder ${path}.`);
    files.push(...found);
  }
  return { files, isFolder };
}

async function recordingsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  const found: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue;
    const path = join(folder, entry.name);
    // Links to folders are not followed: they may lead in a circle.
    if (entry.isDirectory()) found.push(...(await recordingsIn(path)));
    else if (RECORDINGS.test(entry.name)) found.push(path);
  }
  return found;
}

/** What is not there is no folder: whoever opens it says why. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (status) => status.isDirectory(),
    () => false,
  );
}
