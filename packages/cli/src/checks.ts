import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Confinement, findConfinement, findFfmpeg, MODEL_SAMPLE_RATE } from '@undertone/audio';
import { Classifier, ModelFilesError } from '@undertone/classifier';
import { DISCRETE_LIMITS, PATHS } from '@undertone/contract';
import type { Settings } from '@undertone/server';
import { checkServer, type ServerSettings } from './server-check.ts';
import { S3_SETTINGS, type SettingName } from './settings-flags.ts';
import { checkBucket, checkDatabase, error, type Finding, ok, warning } from './store-checks.ts';
import { isExpected, UserError } from './user-error.ts';

export const CHECKED_SETTINGS = [
  'host',
  'port',
  'dataDir',
  'weights',
  'modelsDir',
  'publicUrl',
  'corsOrigins',
  ...S3_SETTINGS,
] as const satisfies SettingName[];

export type CheckedSettings = Pick<Settings, (typeof CHECKED_SETTINGS)[number] | 'databaseUrl'> &
  ServerSettings;

/** In the order of printing, the most basic first. A check that does not apply returns null. */
export const CHECKS: Record<string, (settings: CheckedSettings) => Promise<Finding | null>> = {
  node: checkNode,
  model: checkModel,
  'data folder': ifDataDirIsUsed(checkDataDir),
  disk: ifDataDirIsUsed(checkDisk),
  database: checkDatabase,
  bucket: checkBucket,
  port: checkPort,
  server: checkServer,
  ffmpeg: checkFfmpeg,
  cores: checkCores,
  memory: checkMemory,
};

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** Always ok: bin/undertone.js refuses a Node that is too old. */
async function checkNode(): Promise<Finding> {
  const { version, platform, arch } = process;
  return ok(`${version} on ${platform} ${arch}`);
}

/** Runs the model once, to find a runtime without a build for this machine. */
async function checkModel({ weights, modelsDir }: Pick<Settings, 'weights' | 'modelsDir'>): Promise<Finding> {
  try {
    const classifier = await Classifier.start({ weights, workers: 1, ...(modelsDir && { modelsDir }) });
    try {
      const { maxSeconds } = DISCRETE_LIMITS;
      const silence = new Float32Array(maxSeconds * MODEL_SAMPLE_RATE);
      const { timings } = await classifier.classifyWindow(silence, { priority: 'discrete' });
      const { licence, commercial_use } = classifier.weights;
      const use = commercial_use ? 'commercial use allowed' : 'no commercial use';
      const speed = `${maxSeconds} s of audio took ${Math.round(timings.inferenceMs)} ms`;
      return ok(`${weights} weights ${classifier.catalog.version}, ${licence} (${use}); ${speed}`);
    } finally {
      await classifier.close();
    }
  } catch (cause) {
    const { message } = cause as Error;
    if (cause instanceof ModelFilesError) return error('its files cannot be used', message);
    return error(
      `does not run: ${message.split('\n', 1)[0]}`,
      'Reinstall it: `make install` in a clone, `npm install` elsewhere.',
    );
  }
}

/** Skips the check if PostgreSQL and S3 replace the data folder. */
function ifDataDirIsUsed(check: (settings: CheckedSettings) => Promise<Finding>): (typeof CHECKS)[string] {
  return async (settings) => (settings.databaseUrl && settings.s3Bucket ? null : check(settings));
}

/** Writes and deletes a file in the data folder, or in the folder where it would be created. */
async function checkDataDir({ dataDir }: Pick<Settings, 'dataDir'>): Promise<Finding> {
  try {
    const folder = await nearestFolder(dataDir);
    const trial = await mkdtemp(join(folder, '.undertone-doctor-'));
    try {
      await writeFile(join(trial, 'trial'), 'x');
    } finally {
      await rm(trial, { recursive: true });
    }
    return ok(folder === dataDir ? `${dataDir} is writable` : `the first start creates ${dataDir}`);
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    const found = code === 'ENOTDIR' ? `${dataDir} is not a folder` : `${dataDir} is not writable (${code})`;
    return error(
      found,
      'Choose another folder with --data-dir or SERVICE_DATA_DIR, or change its permissions.',
    );
  }
}

async function checkDisk({ dataDir }: Pick<Settings, 'dataDir'>): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(await nearestFolder(dataDir));
    return judgeFreeSpace(bavail * bsize);
  } catch (cause) {
    return warning('its free space is unknown', (cause as Error).message);
  }
}

/** An uploaded recording takes up to 1 GiB, and the database needs some space. */
export function judgeFreeSpace(bytes: number): Finding {
  const found = `${size(bytes)} free`;
  const fix = 'Free some space, or choose a folder on another disk with --data-dir or SERVICE_DATA_DIR.';
  if (bytes < 100 * MIB) return error(found, `The server needs 100 MiB to start. ${fix}`);
  if (bytes < 2 * GIB) return warning(found, `One uploaded recording takes up to 1 GiB. ${fix}`);
  return ok(found);
}

async function checkPort({ host, port }: Pick<Settings, 'host' | 'port'>): Promise<Finding> {
  const address = `${host}:${port}`;
  try {
    await listenOnce(host, port);
    return ok(`${address} is free`);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE')
      return error(`cannot listen on ${address} (${code})`, 'Choose another address with --host and --port.');
    if (await answersAsUndertone(host, port)) return ok(`a server is already running on ${address}`);
    return error(
      `${address} is used by another program`,
      'Stop it, or choose another port with --port or SERVICE_PORT.',
    );
  }
}

async function checkFfmpeg(): Promise<Finding> {
  const path = await findFfmpeg();
  if (path === null) {
    return warning(
      'not found: only WAV can be read',
      'For webm, m4a, mp3 and other formats: apt-get install ffmpeg, or brew install ffmpeg.',
    );
  }
  try {
    const { stdout } = await promisify(execFile)(path, ['-version'], { timeout: 10_000 });
    return judgeFfmpeg(`${path}, ${stdout.split(' ', 3).join(' ')}`, await findConfinement(path));
  } catch (cause) {
    return warning(
      `${path} does not run (${(cause as Error).message.split('\n', 1)[0]})`,
      'Reinstall ffmpeg.',
    );
  }
}

/** ffmpeg parses untrusted files: its sandbox matters as much as its version. */
export function judgeFfmpeg(
  found: string,
  { sandbox, limits }: Pick<Confinement, 'sandbox' | 'limits'>,
): Finding {
  const limited = limits ? 'limited memory and CPU time' : 'no limits on memory and CPU time (no prlimit)';
  if (sandbox !== 'none') return ok(`${found}; no network and no files (${sandbox}), ${limited}`);
  const fix =
    'Install bubblewrap (apt-get install bubblewrap). If it is there, this machine or container forbids user namespaces: ' +
    'then ffmpeg has the rights of the server, and SECURITY.md says what else helps.';
  return warning(`${found}; no sandbox, ${limited}`, fix);
}

async function checkCores(): Promise<Finding> {
  return ok(`${availableParallelism()}, one inference thread each unless SERVICE_WORKERS is set`);
}

async function checkMemory(): Promise<Finding> {
  // A container's limit; 0 or a huge number means that there is none.
  const limit = process.constrainedMemory();
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  if (bytes >= GIB) return ok(size(bytes));
  return warning(
    size(bytes),
    'Under load the server needs up to 800 MB: give it 1 GiB, or lower SERVICE_WORKERS.',
  );
}

/** Turns an error of the data folder or the database into one for the user; returns any other as it is. */
export async function explainStorage(cause: unknown, dataDir: string, databaseUrl = ''): Promise<unknown> {
  if (isExpected(cause)) return cause;
  if ((cause as Error).name === 'RefusedError') return new UserError((cause as Error).message, { cause });
  if (databaseUrl !== '') {
    const { name, message } = cause as Error;
    if (name !== 'StoreUnavailableError' && name !== 'NewerSchemaError') return cause;
    return new UserError(`The database in SERVICE_DATABASE_URL cannot be used. ${message}`, { cause });
  }
  const { state, found, fix } = await checkDataDir({ dataDir });
  if (state === 'error') return new UserError(`The data folder ${found}. ${fix}`, { cause });
  const reason = (cause as Error).name === 'StoreUnavailableError' ? cause : await openingError(dataDir);
  if (reason === null) return cause;
  return new UserError(`The data folder ${dataDir} cannot be used: ${(reason as Error).message}`, { cause });
}

async function openingError(dataDir: string): Promise<unknown> {
  const { openStores } = await import('@undertone/server/stores');
  try {
    const stores = await openStores({ dataDir }, { kind: 'local' });
    await stores.close();
    return null;
  } catch (error) {
    return error;
  }
}

async function nearestFolder(path: string): Promise<string> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) throw Object.assign(new Error(`${path} is not a folder`), { code: 'ENOTDIR' });
    return path;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw cause;
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

function size(bytes: number): string {
  return bytes < GIB ? `${Math.floor(bytes / MIB)} MiB` : `${(bytes / GIB).toFixed(1)} GiB`;
}
