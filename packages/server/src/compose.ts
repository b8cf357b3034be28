import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Classifier } from '@undertone/classifier';
import { ASYNCH_LIMITS } from '@undertone/contract';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import packageJson from '../package.json' with { type: 'json' };
import { buildApp, buildOperationsApp } from './app.ts';
import { AudioHours } from './audio-hours.ts';
import { KeyEventLog } from './audit.ts';
import { openWhenAvailable } from './await-stores.ts';
import { Admission } from './clips/admission.ts';
import { HeldBytes } from './held-bytes.ts';
import { Authenticator } from './http/authenticator.ts';
import { baseUrls } from './http/base-url.ts';
import { CONNECTION_LIMITS, type ConnectionLimits } from './http/connections.ts';
import { Metrics } from './operators/metrics.ts';
import { readOwnerUse } from './operators/owner-use.ts';
import { whyNotReady } from './operators/readiness.ts';
import { StoreHealth } from './operators/store-health.ts';
import { Sweep } from './recordings/sweep.ts';
import { Uploads } from './recordings/uploads.ts';
import { RecordingWorker, type WorkerTimes } from './recordings/worker.ts';
import type { Services } from './services.ts';
import { defaultLimits, requireSharedRecordings, type Settings } from './settings.ts';
import { openStores, type Stores } from './stores/index.ts';
import { measured } from './stores/measured.ts';
import { TokenBuckets } from './stores/sql/limits.ts';
import { eraseOldCopies } from './stores/sqlite/open.ts';
import { Streams } from './streams/registry.ts';
import type { StreamTimes } from './streams/session.ts';
import { openTelemetry } from './telemetry/open.ts';
import { NO_TELEMETRY, type Telemetry, withSpan } from './telemetry/telemetry.ts';
import { Tokens } from './tokens/tokens.ts';
import { Webhooks, type WebhookTimes } from './webhooks/deliver.ts';

/** Clips are small; a part has up to 100 MB, a whole recording in one call up to 1 GiB. */
const BODY_TIMEOUTS: Services['bodyTimeouts'] = {
  clip: { idleMs: 10_000, totalMs: 30_000 },
  part: { idleMs: 30_000, totalMs: 15 * 60_000 },
  recording: { idleMs: 30_000, totalMs: 60 * 60_000 },
};

const ADMISSION_LIMITS = { maxBytes: 256 * 1024 * 1024, maxWaitMs: 2_000 };

/** Memory for audio of streams that waits, and for recordings on their way to S3. Short recordings have their own. */
const HELD_BYTES = 256 * 1024 * 1024;
/** With one answer every 5 s, a thread that takes 100 ms for each is then always busy. */
const STREAMS_PER_THREAD = 50;

/** What the services are built from. Tests replace some of it. */
export interface Dependencies {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly stores: Stores;
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly stopping: AbortSignal;
  readonly telemetry?: Telemetry;
  readonly bodyTimeouts?: Partial<Services['bodyTimeouts']>;
  readonly connectionLimits?: Partial<ConnectionLimits>;
  readonly heldBytes?: number;
  readonly admissionLimits?: Partial<typeof ADMISSION_LIMITS>;
  readonly workerTimes?: Partial<WorkerTimes>;
  readonly streamTimes?: Partial<StreamTimes>;
  readonly webhookTimes?: Partial<WebhookTimes>;
  /** How often readiness may write to the stores. */
  readonly storeCheckMs?: number;
  readonly now?: () => number;
}

export function composeServices(dependencies: Dependencies): { services: Services; sweep: Sweep } {
  const { settings, logger, classifier, metrics, stopping, now, telemetry = NO_TELEMETRY } = dependencies;
  const { ledger, secrets, shared } = dependencies.stores;
  const {
    requests,
    keys,
    webhooks: webhookStore,
    blobs,
  } = measureStores(dependencies.stores, metrics, telemetry);
  const bodyTimeouts = { ...BODY_TIMEOUTS, ...dependencies.bodyTimeouts };
  metrics.watchClassifier(classifier);
  metrics.watchBacklog({ requests, webhooks: webhookStore });
  metrics.buildInfo({
    version: packageJson.version,
    role: settings.role,
    weights: classifier.weightsName,
    node: process.version,
  });
  const storeHealth = new StoreHealth({
    requests,
    blobs,
    keys,
    logger,
    writeEveryMs: dependencies.storeCheckMs,
  });
  metrics.watchStores(storeHealth.states);
  const authenticator = new Authenticator({
    keys,
    environmentKey: settings.apiKey,
    defaultLimits: defaultLimits(settings),
    logger,
    ...(now && { monotonicMs: now }),
  });
  const readiness = { settings, classifier, authenticator, storeHealth, stopping };
  metrics.watchReadiness(async () => (await whyNotReady(readiness)) === null);
  const webhooks = new Webhooks({
    store: webhookStore,
    allowPrivate: settings.webhookPrivate,
    secrets,
    metrics,
    telemetry,
    logger,
    ...(dependencies.webhookTimes && { times: dependencies.webhookTimes }),
  });
  const audioHours = new AudioHours({ ledger, logger, ...(now && { now }) });
  const worker = new RecordingWorker({
    requests,
    blobs,
    classifier,
    metrics,
    telemetry,
    logger,
    onFinished: () => webhooks.wake(),
    onAudio: (owner, seconds) => audioHours.add(owner, seconds),
    jobs: settings.asynchJobs,
    ...(dependencies.workerTimes && { times: dependencies.workerTimes }),
  });
  const held = new HeldBytes(dependencies.heldBytes ?? HELD_BYTES);
  const streams = new Streams({
    totalLimit:
      settings.streamTotalLimit === 'auto'
        ? STREAMS_PER_THREAD * classifier.stats().threads
        : settings.streamTotalLimit,
    expectedWaitMs: () => {
      const { discrete, stream } = classifier.stats().queued;
      return classifier.expectedWaitMs(discrete + stream);
    },
    metrics,
    held,
    times: dependencies.streamTimes ?? {},
  });
  const uploads = new Uploads({
    requests,
    blobs,
    metrics,
    timeouts: bodyTimeouts,
    storageLimit: settings.storageLimit,
    held,
    isEnvironmentOwner: (owner) => authenticator.isEnvironmentOwner(owner),
    onQueued: () => worker.wake(),
  });
  const sweep = new Sweep({
    requests,
    blobs,
    logger,
    onUnprocessed: (requests) => metrics.expiredUnprocessed.inc(requests),
    storageLimit: settings.storageLimit,
    onSwept: (succeeded) => metrics.observeSweep(succeeded),
    orphanAfterMs: bodyTimeouts.recording.totalMs + 60_000,
    takeTurn: shared && ((everyMs) => shared.takeTurn('sweep', everyMs)),
    eraseOldCopies:
      shared === undefined
        ? () => eraseOldCopies(settings.dataDir, ASYNCH_LIMITS.retentionSeconds * 1000)
        : undefined,
    ...(now && { now }),
  });
  const admission = new Admission({
    ...ADMISSION_LIMITS,
    ...dependencies.admissionLimits,
    maxWork: settings.queueLimit + classifier.stats().threads,
    expectedWaitMs: (requests) => classifier.expectedWaitMs(requests),
  });
  if (settings.metricsOwners) {
    metrics.watchOwners(() => readOwnerUse({ ledger, streams, webhooks, held: [admission.held, held] }));
  }
  const services: Services = {
    settings,
    logger,
    metrics,
    telemetry,
    classifier,
    storeHealth,
    admission,
    authenticator,
    tokens: new Tokens({ authenticator, secret: secrets.derive('tokens'), ...(now && { now }) }),
    audioHours,
    makeBuckets: shared?.makeBuckets ?? (() => new TokenBuckets()),
    requests,
    blobs,
    secrets,
    uploads,
    baseUrlOf: baseUrls(settings, logger),
    worker,
    streams,
    webhooks,
    bodyTimeouts,
    connectionLimits: { ...CONNECTION_LIMITS, ...dependencies.connectionLimits },
    stopping,
  };
  return { services, sweep };
}

function measureStores({ requests, keys, webhooks, blobs }: Stores, metrics: Metrics, telemetry: Telemetry) {
  const options = (store: string) => ({
    measure: metrics.measureStore(store),
    run: telemetry.isOn
      ? (method: string, call: () => Promise<unknown>) =>
          withSpan(telemetry, `${store}.${method}`, { kind: 'client' }, call)
      : undefined,
  });
  return {
    requests: measured(requests, options('requests')),
    keys: measured(keys, options('keys')),
    webhooks: measured(webhooks, options('webhooks')),
    // Clients and the decoder decide how long these take.
    blobs: measured(blobs, { ...options('recordings'), except: ['write', 'read'] }),
  };
}

export interface RunningServer {
  readonly app: FastifyInstance;
  readonly url: string;
  /** The key that this start created because there was none. It is not available again. */
  readonly firstKey: string | null;
  /** Nobody got to see it: revokes it, so that the next start creates another. */
  discardFirstKey(): Promise<void>;
  stop(): Promise<void>;
}

const FIRST_KEY_EVERY_MS = 60_000;

/** Opens the stores and the models, wires them together and listens. */
export async function startServer(settings: Settings, logger: Logger): Promise<RunningServer> {
  requireSharedRecordings(settings);
  // Closed in reverse order if the start fails.
  await using opened = new AsyncDisposableStack();
  const stores = await openServerStores(settings, logger);
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
  const telemetry = await openTelemetry(
    process.env,
    { version: packageJson.version, role: settings.role },
    (err) => logger.warn({ err }, 'no traces are sent: the packages of OpenTelemetry cannot be loaded'),
  );
  opened.defer(() => telemetry.stop());
  const { services, sweep } = composeServices({
    settings,
    logger,
    stores,
    classifier,
    metrics,
    telemetry,
    stopping: stopping.signal,
  });
  opened.defer(() => services.authenticator.close());
  opened.defer(() => services.audioHours.close());
  const keyEvents = new KeyEventLog({ keys: stores.keys, logger });
  opened.defer(() => keyEvents.close());
  const app = await buildApp(services);
  opened.defer(() => app.close());
  // A burst of new connections beyond Node's 511 would keep other newcomers waiting for a second.
  await app.listen({ host: settings.host, port: settings.port, backlog: CONNECTION_LIMITS.max });
  if (settings.operationsPort > 0) {
    const operations = await buildOperationsApp(services);
    opened.defer(() => operations.close());
    await operations.listen({ host: settings.host, port: settings.operationsPort });
  }
  const { worker, webhooks } = services;
  if (settings.role !== 'api') {
    worker.start();
    webhooks.start();
    stores.shared?.listen({ queued: () => worker.wake(), over: (id) => worker.cancel(id) });
  }
  sweep.start();

  const first = (await needsKey(settings, stores)) ? await stores.keys.create('first start') : null;
  const url = settings.publicUrl || addressOf(app);
  const confinement = await classifier.ffmpegConfinement();
  logger.info(
    {
      url,
      role: settings.role,
      weights: classifier.weightsName,
      licence: classifier.weights.licence,
      commercial_use: classifier.weights.commercial_use,
      threads: classifier.stats().threads,
      formats: confinement === null ? 'WAV only (ffmpeg not found)' : 'everything ffmpeg reads',
      ...(confinement !== null && { ffmpeg_sandbox: confinement.sandbox, ffmpeg_limits: confinement.limits }),
    },
    'ready',
  );
  if (confinement?.sandbox === 'none') {
    logger.warn(
      'ffmpeg, which reads untrusted files, runs without a sandbox here; `undertone doctor` says more',
    );
  }
  const cleanUp = opened.move();
  return {
    app,
    url,
    firstKey: first?.key ?? null,
    discardFirstKey: async () => {
      if (first !== null) await stores.keys.revoke(first.record.id);
    },
    /** Shuts down in the order of the data: no new requests, running jobs requeued, connections closed, stores closed. */
    stop: async () => {
      stopping.abort();
      logger.info('stopping; finishing in-flight requests');
      await sleep(settings.drainSeconds * 1000);
      const closed = app.close();
      const force = setTimeout(() => app.server.closeAllConnections(), settings.finishSeconds * 1000);
      await Promise.all([worker.stop(), webhooks.stop(), sweep.stop()]);
      await closed;
      clearTimeout(force);
      await cleanUp.disposeAsync();
      logger.info('stopped');
    },
  };
}

/** Waits for PostgreSQL. A data folder that cannot be used ends the start, because only its operator can change that. */
async function openServerStores(settings: Settings, logger: Logger): Promise<Stores> {
  const onThreadError = (err: Error) => logger.error({ err }, 'the store thread stopped; restarting it');
  const open = () => openStores(settings, { kind: 'thread', onThreadError });
  if (settings.databaseUrl === '') return open();
  return openWhenAvailable(
    async () => {
      await using opened = new AsyncDisposableStack();
      const stores = await open();
      opened.defer(() => stores.close());
      if (!settings.s3Bucket) {
        const { lockForOneProcess } = await import('./stores/postgres/single-process.ts');
        const unlock = await lockForOneProcess(settings.databaseUrl, (err) => {
          logger.fatal({ err }, 'stopping');
          process.kill(process.pid, 'SIGTERM');
        });
        opened.defer(unlock);
      }
      const closing = opened.move();
      return { ...stores, close: () => closing.disposeAsync() };
    },
    settings,
    logger,
  );
}

/** When several processes start on a new database, only one creates the key. */
async function needsKey({ apiKey, role }: Settings, { keys, shared }: Stores): Promise<boolean> {
  if (apiKey !== '' || role === 'worker' || !(await keys.isEmpty())) return false;
  return (await shared?.takeTurn('first key', FIRST_KEY_EVERY_MS)) ?? true;
}

function addressOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
