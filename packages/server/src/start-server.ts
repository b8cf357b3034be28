import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Classifier } from '@undertone/classifier';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import packageJson from '../package.json' with { type: 'json' };
import { buildApp, buildOperationsApp } from './app.ts';
import { KeyEventLog } from './audit.ts';
import { openWhenAvailable } from './await-stores.ts';
import { composeServices } from './compose.ts';
import { CONNECTION_LIMITS } from './http/connections.ts';
import { Metrics } from './operators/metrics.ts';
import { requireSharedRecordings, type Settings } from './settings.ts';
import { type CloseStack, closeOnFailure } from './stores/close-stack.ts';
import { openStores, type Stores } from './stores/index.ts';
import { openTelemetry } from './telemetry/open.ts';

export interface RunningServer {
  readonly app: FastifyInstance;
  readonly url: string;
  /** The key that this start created because there was none. It is not available again. */
  readonly firstKey: string | null;
  /** Nobody got to see it: revokes it, so that the next start creates another. */
  discardFirstKey(): Promise<void>;
  stop(): Promise<void>;
}

/** Running work gets this long to be requeued at shutdown. */
const STOP_WORK_MS = 7_000;

const FIRST_KEY_EVERY_MS = 60_000;

/** Opens the stores and the models, wires them together and listens. */
export function startServer(settings: Settings, logger: Logger): Promise<RunningServer> {
  return closeOnFailure((opened) => openServer(settings, logger, opened));
}

async function openServer(settings: Settings, logger: Logger, opened: CloseStack): Promise<RunningServer> {
  requireSharedRecordings(settings);
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
  const keyEvents = new KeyEventLog({ keys: stores.keys, logger });
  const savers = [services.authenticator, services.audioHours, keyEvents];
  // At the same time: with an unavailable store each waits for it.
  opened.defer(async () => void (await Promise.all(savers.map((saver) => saver.close()))));
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
      const stopped = Promise.all([worker.stop(), webhooks.stop(), sweep.stop()]);
      // A call that moves much data may wait longer for a store that hangs. Undone, it is done again after the next start.
      await Promise.race([stopped, sleep(STOP_WORK_MS, undefined, { ref: false })]);
      await closed;
      clearTimeout(force);
      await opened.close();
      logger.info('stopped');
    },
  };
}

/** Waits for PostgreSQL. A data folder that cannot be used ends the start, because only its operator can change that. */
async function openServerStores(settings: Settings, logger: Logger): Promise<Stores> {
  const onThreadError = (err: Error) => logger.error({ err }, 'the store thread stopped; restarting it');
  const open = (afterOutage: boolean) => openStores(settings, { kind: 'thread', afterOutage, onThreadError });
  if (settings.databaseUrl === '') return open(false);
  return openWhenAvailable(
    (afterOutage) =>
      closeOnFailure(async (opened) => {
        const stores = await open(afterOutage);
        opened.defer(() => stores.close());
        if (!settings.s3Bucket) {
          const { lockForOneProcess } = await import('./stores/postgres/single-process.ts');
          const unlock = await lockForOneProcess(settings.databaseUrl, (err) => {
            logger.fatal({ err }, 'stopping');
            process.kill(process.pid, 'SIGTERM');
          });
          opened.defer(unlock);
        }
        return { ...stores, close: () => opened.close() };
      }),
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
