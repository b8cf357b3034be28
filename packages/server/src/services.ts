import type { Classifier } from '@undertone/classifier';
import type { FastifyBaseLogger } from 'fastify';
import type { Authenticator } from './http/authenticator.ts';
import type { BodyTimeouts } from './http/body.ts';
import type { Metrics } from './operators/metrics.ts';
import type { AsynchMetrics } from './recordings/metrics.ts';
import type { Uploads } from './recordings/uploads.ts';
import type { AsynchProcessor } from './recordings/worker.ts';
import type { Settings } from './settings.ts';
import type { BlobStore } from './stores/blobs.ts';
import type { RequestStore } from './stores/contracts.ts';
import type { Secrets } from './stores/signing.ts';
import type { MakeBuckets } from './stores/sql/limits.ts';
import type { Streams } from './streams/registry.ts';
import type { Webhooks } from './webhooks/deliver.ts';

/** What the routes work with. Made, and closed, by `compose.ts`. */
export interface Services {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly metrics: Metrics;
  readonly asynchMetrics: AsynchMetrics;
  readonly classifier: Classifier;
  readonly authenticator: Authenticator;
  readonly makeBuckets: MakeBuckets;
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly presigner: Secrets;
  readonly uploads: Uploads;
  readonly processor: AsynchProcessor;
  readonly streams: Streams;
  readonly webhooks: Webhooks;
  readonly bodyTimeouts: {
    readonly clip: BodyTimeouts;
    readonly part: BodyTimeouts;
    readonly recording: BodyTimeouts;
  };
  /** Aborted when the server has been asked to stop. */
  readonly stopping: AbortSignal;
}
