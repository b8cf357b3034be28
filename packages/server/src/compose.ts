import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFfmpeg } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import { ASYNCH_LIMITS } from '@undertone/contract';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.ts';
import { Authenticator } from './http/authenticator.ts';
import { Metrics } from './operators/metrics.ts';
import { AsynchMetrics } from './recordings/metrics.ts';
import { Sweep } from './recordings/sweep.ts';
import { Uploads } from './recordings/uploads.ts';
import { AsynchProcessor, type ProcessorTimes } from './recordings/worker.ts';
import type { Services } from './services.ts';
import type { Settings } from './settings.ts';
import { openStores, type Stores } from './stores/index.ts';
import { TokenBuckets } from './stores/sql/limits.ts';
import { eraseOldCopies } from './stores/sqlite/open.ts';
import { Streams, type StreamTimes } from './streams/registry.ts';
import { Webhooks, type WebhookTimes } from './webhooks/deliver.ts';

/**
 * A clip is small: whoever needs longer than this to send one is not going to finish. A part has 100 MB at the most, a
 * whole recording in one call 1 GiB.
 */
const BODY_TIMEOUTS: Services['bodyTimeouts'] = {
  clip: { idleMs: 10_000, totalMs: 30_000 },
  part: { idleMs: 30_000, totalMs: 15 * 60_000 },
  recording: { idleMs: 30_000, totalMs: 60 * 60_000 },
};

/** What `composeServices` puts together. Tests bring some of it themselves. */
export interface Parts {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly stores: Stores;
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly stopping: AbortSignal;
  readonly bodyTimeouts?: Partial<Services['bodyTimeouts']>;
  readonly processorTimes?: Partial<ProcessorTimes>;
  readonly streamTimes?: Partial<StreamTimes>;
  readonly webhookTimes?: Partial<WebhookTimes>;
  readonly now?: () => number;
}

export function composeServices(parts: Parts): { services: Services; sweep: Sweep } {
  const { settings, logger, classifier, metrics, stopping, now } = parts;
  const { requests, keys, blobs, presigner, shared } = parts.stores;
  const bodyTimeouts = { ...BODY_TIMEOUTS, ...parts.bodyTimeouts };
  const asynchMetrics = new AsynchMetrics(metrics, requests);
  metrics.watchClassifier(classifier);
  const authenticator = new Authenticator({
    keys,
    environmentKey: settings.apiKey,
    logger,
    ...(now && { now }),
  });
  const webhooks = new Webhooks({
    store: parts.stores.webhooks,
    allowPrivate: settings.webhookPrivate,
    presigner,
    metrics: asynchMetrics,
    logger,
    ...(parts.webhookTimes && { times: parts.webhookTimes }),
  });
  const processor = new AsynchProcessor({
    requests,
    blobs,
    classifier,
    metrics: asynchMetrics,
    logger,
    onFinished: () => webhooks.wake(),
    jobs: settings.asynchJobs,
    ...(parts.processorTimes && { times: parts.processorTimes }),
  });
  const streams = new Streams({ limit: settings.streamLimit, metrics, times: parts.streamTimes ?? {} });
  const uploads = new Uploads({
    requests,
    blobs,
    metrics: asynchMetrics,
    timeouts: bodyTimeouts,
    storageLimit: settings.storageLimit,
    onQueued: () => processor.wake(),
  });
  const sweep = new Sweep({
    requests,
    blobs,
    logger,
    orphanAfterMs: bodyTimeouts.recording.totalMs + 60_000,
    takeTurn: shared && ((everyMs) => shared.takeTurn('sweep', everyMs)),
    also: async () => {
      if (shared === undefined) await eraseOldCopies(settings.dataDir, ASYNCH_LIMITS.retentionSeconds * 1000);
    },
    ...(now && { now }),
  });
  const services: Services = {
    settings,
    logger,
    metrics,
    asynchMetrics,
    classifier,
    authenticator,
    makeBuckets: shared?.makeBuckets ?? ((_, perMinute) => new TokenBuckets(perMinute)),
    requests,
    blobs,
    presigner,
    uploads,
    processor,
    streams,
    webhooks,
    bodyTimeouts,
    stopping,
  };
  return { services, sweep };
}

export interface RunningServer {
  readonly app: FastifyInstance;
  readonly url: string;
  /** A key made by this start because there was none; shown here and never again. */
  readonly firstKey: string | null;
  stop(): Promise<void>;
}

/** After a stop signal, requests under way have this long; then their connections are closed. */
const CLOSE_WITHIN_MS = 5_000;

const FIRST_KEY_EVERY_MS = 60_000;

/** Opens the stores and the model, wires them together and listens. */
export async function startServer(settings: Settings, logger: Logger): Promise<RunningServer> {
  // Undone in the opposite order when the start fails half-way.
  await using opened = new AsyncDisposableStack();
  const onThreadError = (err: Error) => logger.error({ err }, 'the store thread stopped; starting it again');
  const stores = await openStores(settings, { kind: 'thread', onThreadError });
  opened.defer(() => stores.close());
  const classifier = await Classifier.start({
    weights: settings.weights,
    queueLimit: settings.queueLimit,
    ...(settings.workers !== 'auto' && { workers: settings.workers }),
    ...(settings.modelsDir !== '' && { modelsDir: settings.modelsDir }),
  });
  opened.defer(() => classifier.close());
  const stopping = new AbortController();
  const metrics = new Metrics();
  metrics.watchProcess();
  opened.defer(() => metrics.close());
  const { services, sweep } = composeServices({
    settings,
    logger,
    stores,
    classifier,
    metrics,
    stopping: stopping.signal,
  });
  opened.defer(() => services.authenticator.close());
  const app = await buildApp(services);
  opened.defer(() => app.close());
  await app.listen({ host: settings.host, port: settings.port });
  const { processor, webhooks } = services;
  if (settings.role !== 'api') {
    processor.start();
    webhooks.start();
    stores.shared?.listen({ queued: () => processor.wake(), over: (id) => processor.drop(id) });
  }
  sweep.start();

  const firstKey = (await needsKey(settings, stores)) ? (await stores.keys.create('first start')).key : null;
  const url = settings.publicUrl || addressOf(app);
  const ffmpeg = await findFfmpeg();
  logger.info(
    {
      url,
      role: settings.role,
      weights: classifier.weightsName,
      licence: classifier.weights.licence,
      commercial_use: classifier.weights.commercial_use,
      threads: classifier.stats().threads,
      formats: ffmpeg === null ? 'WAV only (ffmpeg was not found)' : 'all that ffmpeg reads',
    },
    'ready',
  );
  const cleanUp = opened.move();
  return {
    app,
    url,
    firstKey,
    /** In the order of the data: no new requests, running jobs given back, answers sent or connections closed, stores. */
    stop: async () => {
      stopping.abort();
      logger.info('stopping: answering what is in flight');
      await sleep(settings.drainSeconds * 1000);
      const closed = app.close();
      const force = setTimeout(() => app.server.closeAllConnections(), CLOSE_WITHIN_MS);
      await Promise.all([processor.stop(), webhooks.stop(), sweep.stop()]);
      await closed;
      clearTimeout(force);
      await cleanUp.disposeAsync();
      logger.info('stopped');
    },
  };
}

/** Of several processes that start at once over a new database, one makes the key. */
async function needsKey({ apiKey, role }: Settings, { keys, shared }: Stores): Promise<boolean> {
  if (apiKey !== '' || role === 'worker' || !(await keys.isEmpty())) return false;
  return (await shared?.takeTurn('first key', FIRST_KEY_EVERY_MS)) ?? true;
}

function addressOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
