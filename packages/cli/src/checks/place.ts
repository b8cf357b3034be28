import { mkdtemp, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { ASYNCH_LIMITS, PATHS } from '@undertone/contract';
import type { Settings } from '@undertone/server';
import { type CheckUp, gib, needed, useful, well } from './check-up.ts';

/** Writes and erases a file where the server would write: in the folder, or where it would be made. */
export async function checkDataDir({ dataDir }: Pick<Settings, 'dataDir'>): Promise<CheckUp> {
  try {
    const place = await nearestFolder(dataDir);
    const trial = await mkdtemp(join(place, '.undertone-doctor-'));
    try {
      await writeFile(join(trial, 'trial'), 'x');
    } finally {
      await rm(trial, { recursive: true });
    }
    return well(place === dataDir ? `${dataDir}, writable` : `${dataDir}, will be made by the first start`);
  } catch (error) {
    return needed(
      `${dataDir} cannot be written to (${(error as NodeJS.ErrnoException).code})`,
      'Choose another folder with --data-dir or SERVICE_DATA_DIR, or change its owner.',
    );
  }
}

export async function checkDisk({ dataDir }: Pick<Settings, 'dataDir'>): Promise<CheckUp> {
  try {
    const { bavail, bsize } = await statfs(await nearestFolder(dataDir));
    const free = bavail * bsize;
    return free >= 2 * ASYNCH_LIMITS.maxFileBytes
      ? well(`${gib(free)} free`)
      : useful(`${gib(free)} free`, 'One uploaded recording may take 1 GiB while it is worked on.');
  } catch (error) {
    return useful('cannot be looked at', (error as Error).message);
  }
}

export async function checkPort({ host, port }: Pick<Settings, 'host' | 'port'>): Promise<CheckUp> {
  const name = `${host}:${port}`;
  try {
    await listenOnce(host, port);
    return well(`${name} is free`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE') {
      return needed(`${name} cannot be listened on (${code})`, 'Choose others with --host and --port.');
    }
    if (await answersAsUndertone(host, port)) return well(`${name} is where a server runs already`);
    return needed(`${name} is taken by another program`, 'Stop it, or choose another port with --port.');
  }
}

async function nearestFolder(path: string): Promise<string> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) throw Object.assign(new Error(`${path} is not a folder`), { code: 'ENOTDIR' });
    return path;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    return nearestFolder(dirname(path));
  }
}

function listenOnce(host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const server = createServer().once('error', reject);
  server.listen({ host, port }, () => server.close(() => resolve()));
  return promise;
}

async function answersAsUndertone(host: string, port: number): Promise<boolean> {
  const name = host.includes(':') ? `[${host}]` : host;
  try {
    const response = await fetch(`http://${name}:${port}${PATHS.health}`, {
      signal: AbortSignal.timeout(2_000),
    });
    return ((await response.json()) as { status?: unknown }).status === 'ok';
  } catch {
    return false;
  }
}
