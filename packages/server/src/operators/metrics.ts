import type { Classifier } from '@undertone/classifier';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { SqlStores } from '../stores/contracts.ts';
import type { Measure } from '../stores/measured.ts';
import { atMostEvery } from './at-most-every.ts';
import { EventLoopDelay } from './event-loop.ts';

const LATENCY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5];
const RATIO_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
/** The p99 of the event loop is that of the last whole interval. */
const LOOP_INTERVAL_MS = 10_000;

const BACKLOG_EVERY_MS = 10_000;

type Counts = Partial<Record<string, number>>;

/** One value of the metric `undertone_owner_use`. */
export interface OwnerUseValue {
  readonly owner: string;
  readonly resource: string;
  readonly value: number;
}

/** All Prometheus metrics. No label ever holds text that a caller sent. */
export class Metrics {
  readonly registry = new Registry();
  readonly requests = this.#counter('undertone_requests_total', 'HTTP responses', [
    'method',
    'route',
    'status',
  ]);
  readonly problems = this.#counter(
    'undertone_problems_total',
    'Refused and failed HTTP requests by error code',
    ['code'],
  );
  readonly latency = this.#histogram('undertone_request_seconds', 'Time from request to response', [
    'method',
    'route',
  ]);
  readonly connectionsRefused = this.#counterFromZero(
    'undertone_connections_refused_total',
    'Connections closed before they showed a valid key, or of a key with too many: too_many, timeout, too_much_data',
    { reason: ['too_many', 'timeout', 'too_much_data'] },
  );
  readonly uploads = this.#counterFromZero(
    'undertone_uploads_total',
    'Uploads initiated, completed and deleted',
    { event: ['initiated', 'completed', 'deleted'] },
  );
  readonly partBytes = this.#counter('undertone_part_bytes_total', 'Bytes of stored parts');
  readonly jobs = this.#counterFromZero('undertone_asynch_jobs_total', 'Recordings completed or failed', {
    outcome: ['completed', 'failed'],
  });
  readonly expiredUnprocessed = this.#counter(
    'undertone_expired_unprocessed_total',
    'Requests that expired after 24 hours without having been processed',
  );
  readonly webhooks = this.#counterFromZero(
    'undertone_webhooks_total',
    'Webhook attempts: delivered, failed (retried later), given_up',
    { outcome: ['delivered', 'failed', 'given_up'] },
  );
  readonly #jobRatio = this.#histogram(
    'undertone_asynch_seconds_per_audio_second',
    'Processing seconds per second of audio',
    [],
    RATIO_BUCKETS,
  );
  readonly #stages = this.#histogram(
    'undertone_discrete_stage_seconds',
    'Time of each stage of a discrete request',
    ['stage'],
  );
  readonly #streamLag = this.#histogram(
    'undertone_stream_lag_seconds',
    'Time from the last byte of a stream window to its prediction',
  );
  readonly #storeSeconds = this.#histogram('undertone_store_seconds', 'Time of each call to a store', [
    'store',
  ]);
  readonly #storeErrors = this.#counter('undertone_store_errors_total', 'Failed calls to a store', [
    'store',
    'reason',
  ]);
  readonly #sweeps = this.#counterFromZero('undertone_sweeps_total', 'Runs of the sweep in this process', {
    outcome: ['succeeded', 'failed'],
  });
  readonly #lastSweep = new Gauge({
    name: 'undertone_sweep_last_success_timestamp_seconds',
    help: 'Time of the last successful sweep in this process',
    registers: [this.registry],
  });
  readonly #audioSeconds = this.#counter('undertone_audio_seconds_total', 'Seconds of audio classified', [
    'interface',
  ]);
  readonly #eventLoop: EventLoopDelay;

  constructor({ loopIntervalMs = LOOP_INTERVAL_MS }: { loopIntervalMs?: number } = {}) {
    const eventLoop = new EventLoopDelay(loopIntervalMs);
    this.#eventLoop = eventLoop;
    this.#gauge(
      'undertone_event_loop_delay_max_seconds',
      'Maximum event-loop delay since the start',
      () => eventLoop.max,
    );
    this.#gauge(
      'undertone_event_loop_delay_p99_seconds',
      'p99 event-loop delay in the last 10 seconds',
      () => eventLoop.p99,
    );
  }

  /** Startup blocks the event loop, before there is any request to delay. */
  resetEventLoopDelay(): void {
    this.#eventLoop.reset();
  }

  /** Memory, CPU time and garbage collection. Once per process, so not in every app that a test builds. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  watchClassifier(classifier: Classifier): void {
    this.#gauge('undertone_inference_threads', 'Running inference threads', () => classifier.stats().alive);
    this.#gauge('undertone_inference_threads_busy', 'Busy inference threads', () => classifier.stats().busy);
    this.#gauge(
      'undertone_inference_thread_restarts',
      'Inference threads replaced',
      () => classifier.stats().restarts,
    );
    this.#gaugeByLabel(
      'undertone_queue_length',
      'Tasks waiting for an inference thread',
      'priority',
      () => classifier.stats().queued,
    );
  }

  watchAdmission(inFlight: () => number): void {
    this.#gauge(
      'undertone_discrete_requests_in_flight',
      'Discrete requests being received, queued or classified',
      inFlight,
    );
  }

  watchStreams(open: () => number): void {
    this.#gauge('undertone_streams_open', 'Open streams', open);
  }

  /** Bounded labels that never change while the process runs. */
  buildInfo(labels: Readonly<Record<'version' | 'role' | 'weights' | 'node', string>>): void {
    new Gauge({
      name: 'undertone_build_info',
      help: '1; its labels say what runs here',
      labelNames: Object.keys(labels),
      registers: [this.registry],
    }).set({ ...labels }, 1);
  }

  watchReadiness(isReady: () => Promise<boolean>): void {
    this.#gauge('undertone_ready', '1 if the process accepts traffic (/readyz), 0 if not', async () =>
      Number(await isReady()),
    );
  }

  watchStores(states: () => Promise<Readonly<Record<string, string | null>>>): void {
    this.#gaugeByLabel('undertone_store_up', '1 if the store can be written, 0 if not', 'store', async () =>
      Object.fromEntries(
        Object.entries(await states()).map(([store, reason]) => [store, reason === null ? 1 : 0]),
      ),
    );
  }

  /** Counts that need the database. Every scrape shares one read in 10 seconds; while it fails, there are none. */
  watchBacklog({ requests, webhooks }: Pick<SqlStores, 'requests' | 'webhooks'>): void {
    const read = atMostEvery(BACKLOG_EVERY_MS, async () => ({
      states: await requests.countByState(),
      backlog: await requests.backlog(),
      webhooks: await webhooks.count(),
    }));
    const orNothing = async <T>(pick: (counts: Awaited<ReturnType<typeof read>>) => T) =>
      read().then(pick, () => undefined);
    this.#gaugeByLabel(
      'undertone_asynch_requests',
      'Asynch requests by state; `queued` ones wait for a worker',
      'state',
      async () => (await orNothing(({ states }) => states)) ?? {},
    );
    this.#gauge(
      'undertone_asynch_abandoned_requests',
      'Requests in state processing whose worker no longer renews its lease',
      () => orNothing(({ backlog }) => backlog.abandoned),
    );
    this.#gauge(
      'undertone_asynch_oldest_waiting_seconds',
      'Age of the oldest request that waits for a worker, since its creation; 0 if none waits',
      () => orNothing(({ backlog }) => backlog.oldestMs / 1000),
    );
    this.#gauge('undertone_webhooks_waiting', 'Webhooks that are not delivered yet', () =>
      orNothing((counts) => counts.webhooks),
    );
  }

  measureStore(store: string): Measure {
    return (seconds, outcome) => {
      this.#storeSeconds.observe({ store }, seconds);
      if (outcome !== 'ok') this.#storeErrors.inc({ store, reason: outcome });
    };
  }

  observeSweep(succeeded: boolean): void {
    this.#sweeps.inc({ outcome: succeeded ? 'succeeded' : 'failed' });
    if (succeeded) this.#lastSweep.setToCurrentTime();
  }

  /** Only if the operator wants it: one series for each owner and resource. */
  watchOwners(read: () => Promise<OwnerUseValue[]>): void {
    new Gauge({
      name: 'undertone_owner_use',
      help: 'With SERVICE_METRICS_OWNERS=true: use by owner of keys and resource: open, queued, storage_bytes, audio_seconds (24 hours) in all processes; streams, webhooks (in flight), held_bytes in this one',
      labelNames: ['owner', 'resource'],
      registers: [this.registry],
      async collect() {
        const values = await read().catch(() => []);
        this.reset();
        for (const { value, ...labels } of values) this.set(labels, value);
      },
    });
  }

  observeClip(stages: Readonly<Record<string, number>>, audioSeconds: number): void {
    for (const [stage, ms] of Object.entries(stages)) this.#stages.observe({ stage }, ms / 1000);
    this.#audioSeconds.inc({ interface: 'discrete' }, audioSeconds);
  }

  observeWindow(lagSeconds: number, audioSeconds: number): void {
    this.#streamLag.observe(lagSeconds);
    this.#audioSeconds.inc({ interface: 'stream' }, audioSeconds);
  }

  observeJob(processingSeconds: number, audioSeconds: number): void {
    this.#jobRatio.observe(processingSeconds / audioSeconds);
    this.#audioSeconds.inc({ interface: 'asynch' }, audioSeconds);
  }

  close(): void {
    this.#eventLoop.close();
  }

  #counter<L extends string>(name: string, help: string, labelNames: L[] = []): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  /** Prometheus sees no increase in a series that starts above 0: without its 0, the first failures raise no alert. */
  #counterFromZero<L extends string>(
    name: string,
    help: string,
    labels: Readonly<Record<L, readonly string[]>>,
  ): Counter<L> {
    const counter = this.#counter(name, help, Object.keys(labels) as L[]);
    for (const [label, values] of Object.entries<readonly string[]>(labels)) {
      for (const value of values) counter.inc({ [label]: value } as Record<L, string>, 0);
    }
    return counter;
  }

  #histogram<L extends string>(
    name: string,
    help: string,
    labelNames: L[] = [],
    buckets = LATENCY_BUCKETS,
  ): Histogram<L> {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] });
  }

  /** `read` is called at every scrape. There is no value while it returns none. */
  #gauge(name: string, help: string, read: () => number | undefined | Promise<number | undefined>): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      async collect() {
        const value = await read();
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  }

  #gaugeByLabel(name: string, help: string, label: string, read: () => Counts | Promise<Counts>): void {
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.registry],
      async collect() {
        const counts = await read();
        this.reset();
        for (const [value, count = 0] of Object.entries(counts)) this.set({ [label]: value }, count);
      },
    });
  }
}
