import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { BlobStore } from '../../../src/asynch/stores/blob-store.ts';
import { FileBlobStore } from '../../../src/asynch/stores/file-blob-store.ts';
import type { JobQueue } from '../../../src/asynch/stores/job-queue.ts';
import { PatientDatabase } from '../../../src/asynch/stores/patient-database.ts';
import type { RequestStore } from '../../../src/asynch/stores/request-store.ts';
import { SqliteJobQueue } from '../../../src/asynch/stores/sqlite-job-queue.ts';
import { SqliteRequestStore } from '../../../src/asynch/stores/sqlite-request-store.ts';
import { openDatabase } from '../../../src/index.ts';

/** A clock the test moves by hand. */
export class Clock {
  ms = Date.UTC(2030, 0, 1);
  readonly now = () => this.ms;
}

/** One way to store requests, blobs or jobs. `open` may be called again: another process on the same store. */
export interface Implementation<Store> {
  readonly name: string;
  fresh(clock: Clock): Promise<Opened<Store>>;
}

export interface Opened<Store> {
  open(): Store;
  close(): Promise<void>;
}

export const requestStores: Implementation<RequestStore>[] = [
  { name: 'SQLite', fresh: (clock) => sqlite((database) => new SqliteRequestStore(database, clock.now)) },
];

export const jobQueues: Implementation<JobQueue>[] = [
  { name: 'SQLite', fresh: (clock) => sqlite((database) => new SqliteJobQueue(database, clock.now)) },
];

export const blobStores: Implementation<BlobStore>[] = [
  {
    name: 'files',
    fresh: async () => {
      const dir = await mkdtemp(join(tmpdir(), 'undertone-test-'));
      return {
        open: () => new FileBlobStore(join(dir, 'uploads')),
        close: () => rm(dir, { recursive: true }),
      };
    },
  },
];

async function sqlite<Store>(make: (database: PatientDatabase) => Store): Promise<Opened<Store>> {
  const dir = await mkdtemp(join(tmpdir(), 'undertone-test-'));
  const databases: DatabaseSync[] = [];
  return {
    open: () => {
      const database = openDatabase(dir);
      databases.push(database);
      return make(new PatientDatabase(database));
    },
    close: async () => {
      for (const database of databases) database.close();
      await rm(dir, { recursive: true });
    },
  };
}
