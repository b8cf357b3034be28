import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Classifier } from '@undertone/classifier';
import type { FastifyBaseLogger } from 'fastify';
import type { AudioHours } from './audio-hours.ts';
import type { Admission } from './clips/admission.ts';
import type { Authenticator } from './http/authenticator.ts';
import type { BaseUrlOf } from './http/base-url.ts';
import type { BodyTimeouts } from './http/body.ts';
import type { ConnectionLimits } from './http/connections.ts';
import type { Metrics } from './operators/metrics.ts';
import type { StoreHealth } from './operators/store-health.ts';
import type { Uploads } from './recordings/uploads.ts';
import type { RecordingWorker } from './recordings/worker.ts';
import type { Settings } from './settings.ts';
import type { BlobStore } from './stores/blobs.ts';
import type { RequestStore } from './stores/contracts.ts';
import type { Secrets } from './stores/signing.ts';
import type { MakeBuckets } from './stores/sql/limits.ts';
import type { Streams } from './streams/registry.ts';
import type { Telemetry } from './telemetry/telemetry.ts';
import type { Tokens } from './tokens/tokens.ts';
import type { Webhooks } from './webhooks/deliver.ts';

/** A Fastify app whose handlers are typed by their TypeBox schemas. */
export type TypedApp = Parameters<FastifyPluginAsyncTypebox>[0];

/** What the routes use. `compose.ts` creates and closes it. */
export interface Services {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly metrics: Metrics;
  readonly telemetry: Telemetry;
  readonly classifier: Classifier;
  readonly storeHealth: StoreHealth;
  readonly admission: Admission;
  readonly authenticator: Authenticator;
  readonly tokens: Tokens;
  readonly audioHours: AudioHours;
  readonly makeBuckets: MakeBuckets;
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly secrets: Secrets;
  readonly uploads: Uploads;
  readonly baseUrlOf: BaseUrlOf;
  readonly worker: RecordingWorker;
  readonly streams: Streams;
  readonly webhooks: Webhooks;
  readonly bodyTimeouts: {
    readonly clip: BodyTimeouts;
    readonly part: BodyTimeouts;
    readonly recording: BodyTimeouts;
  };
  readonly connectionLimits: ConnectionLimits;
  /** Aborted when shutdown begins. */
  readonly stopping: AbortSignal;
}
