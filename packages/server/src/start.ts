import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFfmpeg, resampleAll } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.ts';
import { AsynchService } from './asynch/service.ts';
import { DATABASE_FILE, openDatabase } from './database.ts';
import { SqliteKeyStore } from './keys/sqlite-key-store.ts';
import { Metrics } from './operations/metrics.ts';
import type { Settings } from './settings.ts';

export interface RunningServer {
  readonly app: FastifyInstance;
  readonly url: string;
  /** A key made by this start because there was none; shown here and never again. */
  readonly firstKey: { key: string; keptIn: string } | null;
  /** Answers what is in flight, then lets go of everything. */
  stop(): Promise<void>;
}

/** A clip that would wait longer is refused: with its reading and hearing, no answer is to take five seconds. */
const MAX_WAIT_MS = 2_000;

/** The first recording at a rate waits while its filter is made, and everybody else with it: not at the usual ones. */
const USUAL_SAMPLE_RATES = [44_100, 48_000];

/** Opens the store and the model, wires them together and listens. */
export async function startServer(settings: Settings, logger: Logger): Promise<RunningServer> {
  // Undone in the opposite order, whether the start fails half-way or the server stops.
  const cleanUp = new AsyncDisposableStack();
  try {
    const database = openDatabase(settings.dataDir);
    cleanUp.defer(() => database.close());
    const keys = new SqliteKeyStore(database);
    cleanUp.defer(() => keys.close());
    const classifier = await Classifier.start({
      weights: settings.weights,
      queueLimit: settings.queueLimit,
      maxWaitMs: MAX_WAIT_MS,
      ...(settings.workers !== 'auto' && { workers: settings.workers }),
      ...(settings.modelsDir !== '' && { modelsDir: settings.modelsDir }),
    });
    cleanUp.defer(() => classifier.close());
    for (const rate of USUAL_SAMPLE_RATES) await resampleAll(new Float32Array(rate), rate);
    const ffmpegPath = await findFfmpeg();
    const stopping = new AbortController();
    const metrics = new Metrics();
    metrics.watchProcess();
    const asynchDatabase = openDatabase(settings.dataDir);
    cleanUp.defer(() => asynchDatabase.close());
    const asynch = await AsynchService.open({
      database: asynchDatabase,
      dataDir: settings.dataDir,
      classifier,
      metrics,
      logger,
      ffmpegPath,
      jobs: settings.asynchJobs,
    });
    cleanUp.defer(() => asynch.stop());
    const app = await buildApp({
      settings,
      classifier,
      keys,
      logger,
      metrics,
      asynch,
      ffmpegPath,
      stopping: stopping.signal,
    });
    cleanUp.defer(() => app.close());
    await app.listen({ host: settings.host, port: settings.port });
    asynch.start();

    const needsKey = settings.apiKey === '' && (await keys.isEmpty());
    const firstKey = needsKey
      ? { key: (await keys.create('first start')).key, keptIn: join(settings.dataDir, DATABASE_FILE) }
      : null;
    const url = settings.publicUrl || addressOf(app);
    logger.info(
      {
        url,
        weights: settings.weights,
        licence: classifier.weights.licence,
        commercial_use: classifier.weights.commercial_use,
        workers: classifier.stats().workers,
        formats: ffmpegPath === null ? 'WAV only (ffmpeg was not found)' : 'all that ffmpeg reads',
      },
      'ready',
    );
    return {
      app,
      url,
      firstKey,
      stop: async () => {
        stopping.abort();
        logger.info('stopping: answering what is in flight');
        await sleep(settings.drainSeconds * 1000);
        await cleanUp.disposeAsync();
        logger.info('stopped');
      },
    };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

function addressOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
