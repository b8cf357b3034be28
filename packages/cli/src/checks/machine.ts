import { execFile } from 'node:child_process';
import { availableParallelism, totalmem } from 'node:os';
import { promisify } from 'node:util';
import { findFfmpeg } from '@undertone/audio';
import { type CheckUp, GIB, gib, needed, useful, well } from './check-up.ts';

const OLDEST_NODE = 24;

export async function checkNode(): Promise<CheckUp> {
  const { version, platform, arch } = process;
  const found = `${version} on ${platform} ${arch}`;
  // Older ones are turned away before they get here; they could not read this file.
  return Number.parseInt(version.slice(1), 10) >= OLDEST_NODE
    ? well(found)
    : needed(found, `Node ${OLDEST_NODE} or newer is needed: \`make install\` brings it on Linux.`);
}

export async function checkFfmpeg(): Promise<CheckUp> {
  const path = await findFfmpeg();
  if (path === null) {
    return useful(
      'not found: only WAV can be read',
      'For webm, m4a, mp3 and others: apt-get install ffmpeg, or brew install ffmpeg.',
    );
  }
  try {
    const { stdout } = await promisify(execFile)(path, ['-version'], { timeout: 10_000 });
    return well(`${path}, ${stdout.split(' ', 3).join(' ')}`);
  } catch (error) {
    return useful(
      `${path} does not run (${(error as Error).message.split('\n', 1)[0]})`,
      'Install it again.',
    );
  }
}

export async function checkCores(): Promise<CheckUp> {
  const cores = availableParallelism();
  return well(`${cores}: as many inference threads unless SERVICE_WORKERS says otherwise`);
}

export async function checkMemory(): Promise<CheckUp> {
  // A container may be given less than the machine has; 0 or a huge number means that it is not.
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return bytes >= GIB
    ? well(gib(bytes))
    : useful(gib(bytes), 'Under load the service takes up to 700 MB: give it 1 GiB, or fewer threads.');
}
