import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Classifier } from '@undertone/classifier';
import type { RequestState } from '@undertone/contract';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const LATENCY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5];
const RATIO_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const LOOP_RESOLUTION_MS = 5;

type Counts = Partial<Record<string, number>>;

/** All Prometheus metrics. No label ever holds text that a caller sent. */
export class Metrics {
  readonly registry = new Registry();
  readonly requests = this.#counter('undertone_requests_total', 'HTTP responses', [
    'method',
    'route',
    'status',
  ]);
  readonly latency = this.#histogram('undertone_request_seconds', 'Time from request to response', [
    'method',
    'route',
  ]);
  readonly connectionsRefused = this.#counter(
    'undertone_connections_refused_total',
    'Connections closed before they showed a valid key: too_many, timeout, too_much_data',
    ['reason'],
  );
  readonly uploads = this.#counter('undertone_uploads_total', 'Uploads initiated, completed and deleted', [
    'event',
  ]);
  readonly partBytes = this.#counter('undertone_part_bytes_total', 'Bytes of stored parts');
  readonly jobs = this.#counter('undertone_asynch_jobs_total', 'Recordings completed or failed', ['outcome']);
  readonly webhooks = this.#counter(
    'undertone_webhooks_total',
    'Webhook attempts: delivered, failed (retried later), given_up',
    ['outcome'],
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
  readonly #audioSeconds = this.#counter('undertone_audio_seconds_total', 'Seconds of audio classified', [
    'interface',
  ]);
  readonly #loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });

  constructor() {
    this.#loopDelay.enable();
    // The monitor includes its own sampling interval in the delay.
    const seconds = (nanoseconds: number) => Math.max(0, nanoseconds - LOOP_RESOLUTION_MS * 1e6) / 1e9;
    this.#gauge('undertone_event_loop_delay_max_seconds', 'Maximum event-loop delay since the start', () =>
      seconds(this.#loopDelay.max),
    );
    this.#gauge('undertone_event_loop_delay_p99_seconds', 'p99 event-loop delay since the start', () =>
      seconds(this.#loopDelay.percentile(99)),
    );
  }

  /** Startup blocks the event loop, before there is any request to delay. */
  resetEventLoopDelay(): void {
    this.#loopDelay.reset();
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

  watchStores(states: () => Promise<Readonly<Record<string, string | null>>>): void {
    this.#gaugeByLabel('undertone_store_up', '1 if the store can be written, 0 if not', 'store', async () =>
      Object.fromEntries(
        Object.entries(await states()).map(([store, reason]) => [store, reason === null ? 1 : 0]),
      ),
    );
  }

  watchRequests(countByState: () => Promise<Partial<Record<RequestState, number>>>): void {
    this.#gaugeByLabel(
      'undertone_asynch_requests',
      'Asynch requests by state; `queued` ones wait for a worker',
      'state',
      // An unavailable store must not hide all other metrics.
      () => countByState().catch(() => ({})),
    );
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
    this.#loopDelay.disable();
  }

  #counter<L extends string>(name: string, help: string, labelNames: L[] = []): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram<L extends string>(
    name: string,
    help: string,
    labelNames: L[] = [],
    buckets = LATENCY_BUCKETS,
  ): Histogram<L> {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] });
  }

  /** `read` is called at every scrape. */
  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
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
