import type { Classifier } from '@undertone/classifier';
import type { AsynchService } from './asynch/service.ts';
import type { Patience } from './http/receive.ts';
import type { KeyStore } from './keys/key-store.ts';
import type { Metrics } from './operations/metrics.ts';
import type { Settings } from './settings.ts';

/** What the routes work with. Made by whoever builds the app, and closed by them. */
export interface Services {
  readonly settings: Settings;
  readonly classifier: Classifier;
  readonly keys: KeyStore;
  readonly metrics: Metrics;
  readonly asynch: AsynchService;
  /** The decoder for everything but WAV; null when this machine has none. */
  readonly ffmpegPath: string | null;
  /** With the body of a clip. */
  readonly clipPatience: Patience;
  /** Aborted when the server has been asked to stop. */
  readonly stopping: AbortSignal;
}
