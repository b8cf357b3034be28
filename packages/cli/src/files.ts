import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError, UserError } from './user-error.ts';

/** Extensions that count as recordings in a folder. A file named on the command line may have any. */
const RECORDINGS = /\.(wav|wave|mp3|m4a|mp4|aac|flac|ogg|oga|opus|webm|wma|aif|aiff|amr|3gp|caf)$/i;

export interface Found {
  readonly files: readonly string[];
  /** True if a folder was named: then one bar and a summary replace the output per file. */
  readonly isFolder: boolean;
}

/** The named files, and all recordings in the named folders, sorted by name. */
export async function findRecordings(paths: readonly string[]): Promise<Found> {
  const files: string[] = [];
  let isFolder = false;
  for (const path of paths) {
    refuseAddress(path);
    if (path === '-' || !(await isDirectory(path))) {
      files.push(path);
      continue;
    }
    isFolder = true;
    const found = await recordingsIn(path);
    if (found.length === 0) throw new UserError(`There are no recordings in the folder ${path}.`);
    files.push(...found);
  }
  if (files.indexOf('-') !== files.lastIndexOf('-')) {
    throw new UsageError('Standard input can be read only once: give - once.');
  }
  return { files, isFolder };
}

/** Recordings are files: nothing is downloaded. */
export function refuseAddress(path: string): void {
  const [, scheme = ''] = /^([a-z][a-z\d+.-]+):\/\//i.exec(path) ?? [];
  if (scheme === '') return;
  const how =
    scheme.toLowerCase() === 'file'
      ? 'Give the path of the file.'
      : `Download it first (\`curl -fLO ${path}\`), or pipe it in and use - as the path.`;
  throw new UsageError(`${path} is an address, not a file. ${how}`);
}

async function recordingsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  const found: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue;
    const path = join(folder, entry.name);
    // Links to folders are not followed: they could form a loop.
    if (entry.isDirectory()) found.push(...(await recordingsIn(path)));
    else if (RECORDINGS.test(entry.name)) found.push(path);
  }
  return found;
}

/** Turns an error of reading a file into a message for the user; returns any other as it is. */
export function explainReading(error: unknown, prefix = ''): unknown {
  const reasons: Record<string, string> = {
    ENOENT: 'There is no such file.',
    EISDIR: 'This is a folder.',
    EACCES: 'You are not allowed to read this file.',
  };
  const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''];
  return reason === undefined ? error : new UserError(prefix + reason, { cause: error });
}

/** False for a missing path: opening it will give the error. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (status) => status.isDirectory(),
    () => false,
  );
}
