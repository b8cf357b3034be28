import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from '../operators/metrics.ts';
import type { RequestStore } from '../stores/contracts.ts';

const RATIO_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** What operators may want to know of uploads and jobs. */
export class AsynchMetrics {
  readonly uploads: Counter<'event'>;
  readonly partBytes: Counter;
  readonly jobs: Counter<'outcome'>;
  readonly webhooks: Counter<'outcome'>;
  readonly #ratio: Histogram;
  readonly #metrics: Metrics;

  constructor(metrics: Metrics, requests: RequestStore) {
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
    this.webhooks = new Counter({
      name: 'undertone_webhooks_total',
      help: 'Webhooks sent: delivered, failed (and sent again later), given_up',
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
      help: 'Asynch requests by state; `queued` wait for a worker',
      labelNames: ['state'],
      registers,
      async collect() {
        // Figures of a store that is away are missing; all others are still told.
        const counts = await requests.countByState().catch(() => ({}));
        byState.reset();
        for (const [state, count] of Object.entries(counts)) byState.set({ state }, count);
      },
    });
  }

  observeJob(processingSeconds: number, audioSeconds: number): void {
    this.#ratio.observe(processingSeconds / audioSeconds);
    this.#metrics.countAudio('asynch', audioSeconds);
  }
}
