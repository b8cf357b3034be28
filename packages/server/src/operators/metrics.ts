import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Classifier } from '@undertone/classifier';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const LATENCY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5];
const LOOP_RESOLUTION_MS = 5;

/** Everything Prometheus may want to know. No label ever holds what a caller sent. */
export class Metrics {
  readonly registry = new Registry();
  readonly requests = this.#counter('undertone_requests_total', 'Answers given', [
    'method',
    'route',
    'status',
  ]);
  readonly latency = this.#histogram('undertone_request_seconds', 'Time from request to answer', [
    'method',
    'route',
  ]);
  readonly #stages = this.#histogram(
    'undertone_discrete_stage_seconds',
    'Where the time of a discrete request goes',
    ['stage'],
  );
  readonly #streamLag = this.#histogram(
    'undertone_stream_lag_seconds',
    'Time from the last byte of a window of a stream to its answer',
    [],
  );
  readonly #audioSeconds = this.#counter('undertone_audio_seconds_total', 'Seconds of audio classified', [
    'interface',
  ]);
  readonly #loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });

  constructor() {
    this.#loopDelay.enable();
    // The monitor counts its own rest between two looks as delay.
    const rest = LOOP_RESOLUTION_MS * 1e6;
    const seconds = (nanoseconds: number) => Math.max(0, nanoseconds - rest) / 1e9;
    this.#gauge('undertone_event_loop_delay_max_seconds', 'Maximum event-loop delay since the start', () =>
      seconds(this.#loopDelay.max),
    );
    this.#gauge('undertone_event_loop_delay_p99_seconds', 'p99 event-loop delay since the start', () =>
      seconds(this.#loopDelay.percentile(99)),
    );
  }

  /** Loading and wiring hold the event loop, but nobody is waiting then. */
  resetEventLoopDelay(): void {
    this.#loopDelay.reset();
  }

  /** Memory, processor time and garbage collection of the process: once a process, so not in every app a test builds. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  watchClassifier(classifier: Classifier): void {
    this.#gauge('undertone_inference_threads', 'Inference threads alive', () => classifier.stats().alive);
    this.#gauge(
      'undertone_inference_threads_busy',
      'Inference threads at work',
      () => classifier.stats().busy,
    );
    this.#gauge(
      'undertone_inference_thread_restarts',
      'Inference threads that were replaced',
      () => classifier.stats().restarts,
    );
    const queue = this.#gauge(
      'undertone_queue_length',
      'Tasks waiting for an inference thread',
      () => {
        const { queued } = classifier.stats();
        for (const [priority, length] of Object.entries(queued)) queue.set({ priority }, length);
        return undefined;
      },
      ['priority'],
    );
  }

  watchAdmission(inFlight: () => number): void {
    this.#gauge(
      'undertone_discrete_requests_in_flight',
      'Discrete requests being received, waiting or classified',
      inFlight,
    );
  }

  observeClip(stages: Readonly<Record<string, number>>, audioSeconds: number): void {
    for (const [stage, ms] of Object.entries(stages)) this.#stages.observe({ stage }, ms / 1000);
    this.countAudio('discrete', audioSeconds);
  }

  watchStreams(open: () => number): void {
    this.#gauge('undertone_streams_open', 'Open streams', open);
  }

  observeWindow(lagSeconds: number, audioSeconds: number): void {
    this.#streamLag.observe(lagSeconds);
    this.countAudio('stream', audioSeconds);
  }

  countAudio(kind: 'discrete' | 'asynch' | 'stream', seconds: number): void {
    this.#audioSeconds.inc({ interface: kind }, seconds);
  }

  close(): void {
    this.#loopDelay.disable();
  }

  #counter<L extends string>(name: string, help: string, labelNames: L[]): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram<L extends string>(name: string, help: string, labelNames: L[]): Histogram<L> {
    return new Histogram({ name, help, labelNames, buckets: LATENCY_BUCKETS, registers: [this.registry] });
  }

  /** `read` is called when somebody looks; it returns the value or sets it itself, label by label. */
  #gauge<L extends string>(
    name: string,
    help: string,
    read: () => number | undefined,
    labelNames: L[] = [],
  ): Gauge<L> {
    return new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        const value = read();
        if (typeof value === 'number') this.set(value);
      },
    });
  }
}
