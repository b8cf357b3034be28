import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from '../operations/metrics.ts';
import type { Stores } from './stores/stores.ts';

const RATIO_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** What operators may want to know of uploads and jobs. */
export class AsynchMetrics {
  readonly uploads: Counter<'event'>;
  readonly partBytes: Counter;
  readonly jobs: Counter<'outcome'>;
  readonly #ratio: Histogram;
  readonly #metrics: Metrics;

  constructor(metrics: Metrics, { requests, queue }: Stores) {
    const registers = [metrics.registry];
    this.#metrics = metrics;
    this.uploads = new Counter({
      name: 'undertone_uploads_total',
      help: 'Uploads initiated, completed and deleted',
      labelNames: ['event'],
      registers,
    });
    this.partBytes = new Counter({
      name: 'undertone_part_bytes_total',
      help: 'Bytes of parts that were stored',
      registers,
    });
    this.jobs = new Counter({
      name: 'undertone_asynch_jobs_total',
      help: 'Recordings processed to their end',
      labelNames: ['outcome'],
      registers,
    });
    this.#ratio = new Histogram({
      name: 'undertone_asynch_seconds_per_audio_second',
      help: 'Seconds of processing for each second of audio',
      buckets: RATIO_BUCKETS,
      registers,
    });
    const byState = new Gauge({
      name: 'undertone_asynch_requests',
      help: 'Asynch requests there are, by state',
      labelNames: ['state'],
      registers,
      async collect() {
        const counts = await requests.countByState();
        byState.reset();
        for (const [state, count] of Object.entries(counts)) byState.set({ state }, count);
      },
    });
    new Gauge({
      name: 'undertone_asynch_jobs_waiting',
      help: 'Jobs that wait for a worker',
      registers,
      async collect() {
        this.set(await queue.waiting());
      },
    });
  }

  observeJob(processingSeconds: number, audioSeconds: number): void {
    this.#ratio.observe(processingSeconds / audioSeconds);
    this.#metrics.countAudio('asynch', audioSeconds);
  }
}
