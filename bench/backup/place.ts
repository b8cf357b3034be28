import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DATABASE_FILE } from '@undertone/server';
import { ROOT } from '@undertone/testing/paths';
import type { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { S3_CREDENTIALS, type S3Server } from '@undertone/testing/s3-server';
import { ServerProcess } from '@undertone/testing/server-process';

const COMMAND = join(ROOT, 'packages/cli/bin/undertone.js');

/** Where a service keeps its data: SQLite and files, or PostgreSQL and S3. */
export interface Place {
  readonly name: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Ends the 24 hours of a request: the next start sweeps it. */
  expire(requestId: string): Promise<void>;
}

export function embedded(dataDir: string): Place {
  const expire = async (id: string) => {
    const database = new DatabaseSync(join(dataDir, DATABASE_FILE), { timeout: 5_000 });
    database.prepare('UPDATE requests SET expires_at = ? WHERE id = ?').run(Date.now() - 1_000, id);
    database.close();
  };
  return { name: 'SQLite', dataDir, env: {}, expire };
}

/** A new database, and a bucket that may be there already. */
export async function shared(cluster: PostgresCluster, s3: S3Server, bucket: string): Promise<Place> {
  const url = await cluster.newDatabase();
  const env = {
    SERVICE_DATABASE_URL: url,
    SERVICE_S3_BUCKET: bucket,
    SERVICE_S3_ENDPOINT: s3.endpoint,
  };
  const expire = async (id: string) => {
    await cluster.query(
      `UPDATE undertone.requests SET expires_at = ${Date.now() - 1_000} WHERE id = '${id}';
       DELETE FROM undertone.periodic_tasks -- whose turn it is to sweep`,
      url,
    );
  };
  return { name: 'PostgreSQL', dataDir: await temporaryFolder(), env, expire };
}

const folders: string[] = [];

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-backup-'));
  folders.push(folder);
  return folder;
}

/** All of them, to be removed in the end. */
export function temporaryFolders(): readonly string[] {
  return folders;
}

/** One job at a time, so that recordings wait in the queue. */
export function serverAt({ dataDir, env }: Place): ServerProcess {
  return new ServerProcess(dataDir, { SERVICE_WEBHOOK_PRIVATE: 'true', SERVICE_ASYNCH_JOBS: '1', ...env });
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
}

/** The real command, on the data of this place. */
export function undertone(
  args: readonly string[],
  { dataDir, env }: Pick<Place, 'dataDir' | 'env'>,
): Promise<Ran> {
  const { PATH = '', HOME = '' } = process.env;
  const settings = { PATH, HOME, SERVICE_DATA_DIR: dataDir, ...S3_CREDENTIALS, ...env };
  const start = performance.now();
  return new Promise((resolve) => {
    execFile(process.execPath, [COMMAND, ...args], { env: settings }, (error, stdout, stderr) => {
      const seconds = (performance.now() - start) / 1000;
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr, seconds });
    });
  });
}
