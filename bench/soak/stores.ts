import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ASYNCH_LIMITS } from '@undertone/contract';
import { DATABASE_FILE, openStores, type Stores } from '@undertone/server';
import { filesOf } from '@undertone/testing/asynch-client';
import type { SharedStores } from '@undertone/testing/shared-stores';

/** The stores of the server, as its operator reaches them: how large they are, keys, and the age of what is in them. */
export class SoakStores {
  readonly #dataDir: string;
  readonly #shared: SharedStores | undefined;
  readonly #stores: Stores;

  static async open(dataDir: string, shared: SharedStores | undefined): Promise<SoakStores> {
    const { SERVICE_S3_BUCKET: s3Bucket = '', SERVICE_S3_ENDPOINT: s3Endpoint = '' } = shared?.env ?? {};
    const settings = { dataDir, databaseUrl: shared?.databaseUrl ?? '', s3Bucket, s3Endpoint };
    return new SoakStores(dataDir, shared, await openStores(settings, { kind: 'local' }));
  }

  private constructor(dataDir: string, shared: SharedStores | undefined, stores: Stores) {
    this.#dataDir = dataDir;
    this.#shared = shared;
    this.#stores = stores;
  }

  get keys(): Stores['keys'] {
    return this.#stores.keys;
  }

  /** The file with its write-ahead log, or what PostgreSQL says. */
  async databaseMegabytes(): Promise<number> {
    if (this.#shared === undefined) {
      return bytesOf(['', '-wal', '-shm'].map((end) => join(this.#dataDir, DATABASE_FILE + end)));
    }
    const { cluster, databaseUrl } = this.#shared;
    const [row] = await cluster.query(
      'SELECT pg_database_size(current_database())::float8 AS bytes',
      databaseUrl,
    );
    return Number(row?.['bytes']) / 1e6;
  }

  async recordingsMegabytes(): Promise<number> {
    if (this.#shared === undefined) {
      return bytesOf((await filesOf(this.#dataDir)).map((path) => join(this.#dataDir, path)));
    }
    const { blobs } = this.#stores;
    const parts = await Promise.all((await blobs.groups()).map((group) => blobs.arrived?.(group) ?? []));
    return parts.flat().reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
  }

  /**
   * Requests expire after 24 hours, and their tombstones after 48. A shorter run sees nothing of it, so what is older than
   * `afterMs` expires now, and tombstones at twice that age. The server's own sweep removes both.
   */
  async age(afterMs: number): Promise<void> {
    const now = Date.now();
    const tombstonesEnd = now - ASYNCH_LIMITS.tombstoneSeconds * 1_000;
    const sql = `
      UPDATE requests SET expires_at = ${now} WHERE state IN ('uploading', 'completed', 'failed')
        AND created_at < ${now - afterMs} AND expires_at > ${now};
      UPDATE requests SET expires_at = ${tombstonesEnd} WHERE state IN ('expired', 'deleted')
        AND created_at < ${now - 2 * afterMs} AND expires_at > ${tombstonesEnd}`;
    if (this.#shared !== undefined) {
      await this.#shared.cluster.query(`SET search_path = undertone; ${sql}`, this.#shared.databaseUrl);
      return;
    }
    const database = new DatabaseSync(join(this.#dataDir, DATABASE_FILE), { timeout: 5_000 });
    database.exec(sql);
    database.close();
  }

  close(): Promise<void> {
    return this.#stores.close();
  }
}

async function bytesOf(paths: readonly string[]): Promise<number> {
  const sizes = paths.map((path) =>
    stat(path).then(
      ({ size }) => size,
      () => 0, // removed since it was listed
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) / 1e6;
}
