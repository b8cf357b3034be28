import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Classifier } from '@undertone/classifier';
import type { FastifyBaseLogger } from 'fastify';
import type { Patience } from '../http/receive.ts';
import type { Metrics } from '../operations/metrics.ts';
import { Worker } from './jobs/worker.ts';
import { AsynchMetrics } from './metrics.ts';
import { FileBlobStore } from './stores/file-blob-store.ts';
import { PatientDatabase } from './stores/patient-database.ts';
import { SqliteJobQueue } from './stores/sqlite-job-queue.ts';
import { SqliteRequestStore } from './stores/sqlite-request-store.ts';
import type { Stores } from './stores/stores.ts';
import { Sweeper } from './sweeper.ts';
import { PART_PATIENCE } from './uploads/part-upload.ts';
import { Presigner } from './uploads/presign.ts';
import { readSecret } from './uploads/secret.ts';

export interface AsynchOptions {
  /** A connection of its own: it does not wait for locks the way the others do. */
  readonly database: DatabaseSync;
  readonly dataDir: string;
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly logger: FastifyBaseLogger;
  readonly ffmpegPath: string | null;
  /** Recordings processed at the same time. */
  readonly jobs: number;
  readonly partPatience?: Patience;
  readonly now?: () => number;
}

/** The asynch interface without its routes: stores, workers and the sweeper. */
export class AsynchService {
  readonly stores: Stores;
  readonly presigner: Presigner;
  readonly metrics: AsynchMetrics;
  readonly sweeper: Sweeper;
  readonly partPatience: Patience;
  readonly now: () => number;
  readonly #workers: readonly Worker[];

  static async open(options: AsynchOptions): Promise<AsynchService> {
    return new AsynchService(options, await readSecret(options.dataDir));
  }

  private constructor(options: AsynchOptions, secret: Buffer) {
    const { dataDir, classifier, logger, ffmpegPath, jobs, now = Date.now } = options;
    const database = new PatientDatabase(options.database);
    const scratchDir = join(dataDir, 'scratch');
    this.now = now;
    this.partPatience = options.partPatience ?? PART_PATIENCE;
    this.stores = {
      requests: new SqliteRequestStore(database, now),
      blobs: new FileBlobStore(join(dataDir, 'uploads')),
      queue: new SqliteJobQueue(database, now),
    };
    this.presigner = new Presigner(secret, now);
    this.metrics = new AsynchMetrics(options.metrics, this.stores);
    this.sweeper = new Sweeper({ stores: this.stores, scratchDir, logger, now });
    const { stores, metrics } = this;
    this.#workers = Array.from(
      { length: jobs },
      () => new Worker({ stores, classifier, metrics, logger, ffmpegPath, scratchDir }),
    );
  }

  start(): void {
    this.sweeper.start();
    for (const worker of this.#workers) worker.start();
  }

  /** A job was added. */
  wake(): void {
    for (const worker of this.#workers) worker.wake();
  }

  /** Gives back what is being processed; the next start goes on with it. */
  async stop(): Promise<void> {
    await Promise.all([this.sweeper.stop(), ...this.#workers.map((worker) => worker.stop())]);
  }
}
