import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFfmpeg } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import { ASYNCH_LIMITS } from '@undertone/contract';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp, type Services } from './app.ts';
import { AsynchMetrics } from './asynch/metrics.ts';
import { AsynchProcessor, type ProcessorTimes } from './asynch/processor.ts';
import { Sweep } from './asynch/sweep.ts';
import { Uploads } from './asynch/uploads.ts';
import { TokenBuckets } from './http/rate-limit.ts';
import { Authenticator } from './keys/authenticator.ts';
import { Metrics } from './operations/metrics.ts';
import { SETTINGS, type Settings } from './settings.ts';
import type { BlobStore } from './stores/blob-store.ts';
import { DATABASE_FILE, eraseOldCopies } from './stores/database.ts';
import { FileBlobStore } from './stores/file-blob-store.ts';
import type { KeyStore } from './stores/key-store.ts';
import { openLocalStores } from './stores/local-stores.ts';
import type { PostgresStores } from './stores/postgres-stores.ts';
import { Presigner } from './stores/presign.ts';
import type { RequestStore } from './stores/request-store.ts';
import type { S3BlobStore } from './stores/s3-blob-store.ts';
import { openThreadedStores } from './stores/threaded-stores.ts';
import type { WebhookStore } from './stores/webhook-store.ts';
import { Streams, type StreamTimes } from './streaming/streams.ts';
import { Webhooks, type WebhookTimes } from './webhooks/webhooks.ts';

/** The one place where implementations are chosen and put together; the command line and the tests use it too. */
export interface Stores {
  readonly requests: RequestStore;
  readonly keys: KeyStore;
  readonly webhooks: WebhookStore;
  readonly blobs: BlobStore;
  readonly presigner: Presigner;
  /** Where keys are kept, in words. */
  readonly place: string;
  /** What only several processes need; see `PostgresStores`. */
  readonly shared?: Pick<PostgresStores, 'listen' | 'takeTurn' | 'makeBuckets'>;
  close(): Promise<void>;
}

type StoreSettings = Pick<Settings, 'dataDir'> &
  Partial<
    Pick<
      Settings,
      | 'databaseUrl'
      | 'secret'
      | 's3Bucket'
      | 's3Endpoint'
      | 's3PublicEndpoint'
      | 's3Region'
      | 's3Prefix'
      | 's3Addressing'
    >
  >;

interface StoreOptions {
  /** `thread`: the server, whose main thread waits for no disk. `local`: commands, and tests with a clock of their own. */
  readonly kind: 'thread' | 'local';
  readonly now?: () => number;
  /** Longer in tests that are not about it. */
  readonly answerMs?: number | undefined;
  /** Why the store's thread stopped; it is started again. */
  readonly onThreadError?: (error: Error) => void;
}

export async function openStores(settings: StoreSettings, options: StoreOptions): Promise<Stores> {
  const { dataDir } = settings;
  await using opened = new AsyncDisposableStack();
  const { presigner, close, ...rows } = await (settings.databaseUrl
    ? openPostgres(settings.databaseUrl, settings, options)
    : openEmbedded(settings, options));
  opened.defer(close);
  let blobs: BlobStore;
  if (settings.s3Bucket) {
    const store = await openS3(settings, options);
    opened.defer(() => store.close());
    blobs = store;
  } else {
    blobs = new FileBlobStore(join(dataDir, 'uploads'), presigner);
  }
  const closing = opened.move();
  return { ...rows, presigner, blobs, close: () => closing.disposeAsync() };
}

type Rows = Omit<Stores, 'blobs'>;

async function openEmbedded(
  { dataDir, secret }: StoreSettings,
  { kind, now, answerMs, onThreadError }: StoreOptions,
): Promise<Rows> {
  const stores =
    kind === 'thread'
      ? await openThreadedStores({ dataDir, answerMs, ...(onThreadError && { onThreadError }) })
      : await openLocalStores({ dataDir, answerMs, ...(now && { now }) });
  const presigner = secret ? Presigner.of(secret, now) : await Presigner.open(dataDir, now);
  return { ...stores, presigner, place: join(dataDir, DATABASE_FILE) };
}

/** Loaded only where it is used, as S3 is: one process on one machine needs neither. */
async function openPostgres(
  url: string,
  { secret }: StoreSettings,
  { now, answerMs }: StoreOptions,
): Promise<Rows> {
  const { openPostgresStores } = await import('./stores/postgres-stores.ts');
  const { requests, keys, webhooks, close, ...stores } = await openPostgresStores({ url, now, answerMs });
  const presigner = secret ? Presigner.of(secret, now) : new Presigner(await stores.secret(), now);
  return { requests, keys, webhooks, close, presigner, shared: stores, place: 'the PostgreSQL database' };
}

export async function openS3(
  settings: Omit<StoreSettings, 'dataDir'>,
  { now, answerMs }: Pick<StoreOptions, 'now' | 'answerMs'> = {},
): Promise<S3BlobStore> {
  const { S3BlobStore } = await import('./stores/s3-blob-store.ts');
  return new S3BlobStore({
    bucket: settings.s3Bucket ?? '',
    endpoint: settings.s3Endpoint ?? '',
    publicEndpoint: settings.s3PublicEndpoint ?? '',
    region: settings.s3Region ?? SETTINGS.s3Region.default,
    prefix: settings.s3Prefix ?? SETTINGS.s3Prefix.default,
    addressing: settings.s3Addressing ?? 'auto',
    now,
    answerMs,
  });
}

/**
 * A clip is small: whoever needs longer than this to send one is not going to finish. A part has 100 MB at the most, a
 * whole recording in one call 1 GiB.
 */
const BODY_TIMEOUTS: Services['bodyTimeouts'] = {
  clip: { idleMs: 10_000, totalMs: 30_000 },
  part: { idleMs: 30_000, totalMs: 15 * 60_000 },
  recording: { idleMs: 30_000, totalMs: 60 * 60_000 },
};

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
